package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/sandbox-agent/client"
	"github.com/berth-dev/berth/test/localagent"
	"github.com/berth-dev/berth/test/shellcases"
)

// TestShWithoutBash: an image whose only shell is sh.
func TestShWithoutBash(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{environ: []string{"PATH=/usr/bin:/bin", "BASH_COMPAT=4.4"}})
	testSh(t, a)
}

// testSh holds what persists, and what doesn't, with a plain sh.
func testSh(t *testing.T, a *agent) {
	t.Helper()
	for _, c := range shellcases.Sh() {
		a.check(t, c)
	}
	if h, err := a.client.Health(t.Context(), a.pod); err != nil || h.Shell != client.ShellSh {
		t.Errorf("want health to say sh, got %+v, %v", h, err)
	}
}

// TestNoShellInAPod: the agent ends with a status of its own.
func TestNoShellInAPod(t *testing.T) {
	t.Parallel()
	cmd := agentCommand(t)
	(&agent{}).enterRoot(t, cmd, t.TempDir())
	key, err := client.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(cmd.Env, podEnviron(t, key, "sandboxes", "pod-1")...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 78 || !strings.Contains(string(out), "neither bash nor sh") {
		t.Errorf("want exit 78 and the reason, got %v: %s", err, out)
	}
}

// TestNoShellByHand: the agent says so, and does all else.
func TestNoShellByHand(t *testing.T) {
	t.Parallel()
	a := newAgent(t, agentOptions{root: t.TempDir(), args: []string{"--insecure-no-auth"}})
	_, err := a.client.Exec(t.Context(), a.pod, client.ExecRequest{Command: "true"}, 0)
	if !errors.Is(err, client.ErrNoShell) {
		t.Errorf("want ErrNoShell, got %v", err)
	}
	h, err := a.client.Health(t.Context(), a.pod)
	if err != nil || h.Status != client.StatusNoShell || h.Shell != client.ShellNone || !h.Bound {
		t.Errorf("want health to say no_shell, got %+v, %v", h, err)
	}
	a.write(t, "f", []byte("x"))
	a.export(t, "f")
}

// TestInsecure: by hand on a Unix socket or loopback, never elsewhere, and not
// for web pages.
func TestInsecure(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"all addresses":         {"--listen=:0", "--insecure-no-auth"},
		"another address":       {"--listen=192.0.2.1:0", "--insecure-no-auth"},
		"a name":                {"--listen=example.com:0", "--insecure-no-auth"},
		"Unix socket with auth": {"--unix=" + filepath.Join(t.TempDir(), "s")},
		"both":                  {"--unix=s", "--listen=127.0.0.1:0", "--insecure-no-auth"},
		"no key":                {"--listen=127.0.0.1:0"},
	} {
		out, err := agentCommand(t, append([]string{"serve", "--workspace=" + t.TempDir()}, args...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "berth-agent: ") {
			t.Errorf("%s: want a refusal, got %v: %s", name, err, out)
		}
	}
}

func TestInstall(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 2 { // again over itself
		if out, err := agentCommand(t, "install", dir).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "berth-agent" {
		t.Fatalf("want berth-agent alone, got %v, %v", entries, err)
	}
	if info, err := entries[0].Info(); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("want mode 0755, got %v, %v", info.Mode(), err)
	}
	out, err := agentCommand(t, "install", filepath.Join(dir, "missing")).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "install agent") {
		t.Errorf("want a clear error, got %v: %s", err, out)
	}
}

// TestShippedSize: static, small on disk and small when idle.
func TestShippedSize(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{shipped: true})
	a.run(t, "true")
	path, err := localagent.Program()
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 15_000_000 {
		t.Errorf("want less than 15 MB on disk, got %v, %v", info, err)
	}
	if rss := a.memory(t); rss > 15<<20 {
		t.Errorf("want less than 15 MiB idle, got %d KiB", rss>>10)
	}
}

// agentCommand is berth-agent with args, outside a namespace.
func agentCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = []string{actAsAgent + "=1", "PATH=/usr/bin:/bin"}
	return cmd
}
