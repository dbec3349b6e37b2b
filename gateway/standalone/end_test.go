//go:build linux

package standalone_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// busy starts sessions with all that may outlive a gateway: background processes,
// detached ones, and a command that runs. It returns their processes.
func busy(g *gateway) (pids []int) {
	g.t.Helper()
	for _, id := range []string{"one", "two"} {
		g.bash(id, "sleep 1000 "+g.tmp+" 2>/dev/null & (setsid bash -c 'trap \"\" TERM HUP; read < <(sleep 1000)' "+g.tmp+" &) ; touch "+"f")
		g.tool(id, "bash", map[string]any{"command": "bash -c 'echo started; read' " + g.tmp, "background": true})
	}
	running := make(chan struct{})
	go func() {
		defer close(running)
		// It ends with the gateway, in whatever error that makes.
		_, _ = g.call("one", "bash", map[string]any{"command": "touch runs; bash -c 'read < <(sleep 1000)' " + g.tmp})
	}()
	g.t.Cleanup(func() { <-running })
	pids = g.processes()
	if len(pids) < 4 {
		g.t.Fatalf("%d processes run, want the agents and what they started", len(pids))
	}
	return pids
}

func TestToldToEndItLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{"TERM": syscall.SIGTERM, "Ctrl-C": syscall.SIGINT} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := start(t, temporary(t, os.Getuid()), os.Getuid())
			busy(g)
			if err := g.cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-g.ended:
				if err != nil {
					t.Errorf("it ended with %v", err)
				}
			case <-time.After(30 * time.Second):
				t.Fatal("it didn't end")
			}
			if pids, names := g.processes(), left(t, g.tmp); len(pids)+len(names) > 0 {
				t.Errorf("it left processes %v and files %v", pids, names)
			}
		})
	}
}

// A gateway that is killed takes its sessions' processes along at once. The next
// one removes what it left on disk, and nothing of one that runs.
func TestKilledItLeavesNoProcessAndTheNextNoFolder(t *testing.T) {
	t.Parallel()
	tmp := temporary(t, os.Getuid())
	other := start(t, tmp, os.Getuid())
	other.bash("lives", "echo kept > f")
	folders := left(t, tmp)
	g := start(t, tmp, os.Getuid())
	busy(g)
	var pids []int
	theirs := left(t, tmp)
	for _, pid := range g.processes() {
		if !belongs(pid, filepath.Join(tmp, folders[0])) {
			pids = append(pids, pid)
		}
	}
	wait := g.watch(pids)
	if err := g.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for range g.ended { // killed
	}
	wait()
	if now := left(t, tmp); len(now) != len(theirs) || len(now) != 2 {
		t.Fatalf("folders %v before and %v after", theirs, now)
	}
	start(t, tmp, os.Getuid())
	now := left(t, tmp)
	if len(now) != 2 || now[0] != folders[0] && now[1] != folders[0] {
		t.Errorf("folders %v, want %v and the new gateway's", now, folders)
	}
	if got := other.bash("lives", "cat f"); got != "kept" {
		t.Errorf("the session of the gateway that runs has %q", got)
	}
}

func belongs(pid int, folder string) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && bytes.Contains(line, []byte(folder))
}

// What can't be served is refused at the start, with what to do, and leaves nothing.
func TestRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	broken := filepath.Join(t.TempDir(), "broken-agent")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\necho 'make a PID namespace: not permitted: run as root' >&2; exit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	silent := filepath.Join(t.TempDir(), "silent-agent")
	if err := os.WriteFile(silent, []byte("#!/bin/sh\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"every address":          {[]string{"--listen=:0"}, "--listen must be a loopback address"},
		"an address to others":   {[]string{"--listen=192.0.2.1:8080"}, "--listen must be a loopback address"},
		"a port in use":          {[]string{"--listen=" + taken.Addr().String()}, "is another process using the port?"},
		"no such agent":          {[]string{"--agent=/nowhere/berth-agent"}, "--agent=/nowhere/berth-agent"},
		"an agent that fails":    {[]string{"--agent=" + broken}, "sessions can't run on this machine: the agent ended: exit status 1: make a PID namespace: not permitted: run as root"},
		"an agent that ends":     {[]string{"--agent=" + silent}, "exit status 3 before it answered"},
		"a flag for clusters":    {[]string{"--template=x"}, "--template is for a cluster"},
		"authentication":         {[]string{"--auth=tokenreview"}, "--auth=tokenreview needs a cluster"},
		"no sessions":            {[]string{"--max-sessions=0"}, "--max-sessions=0"},
		"no such artifact store": {[]string{"--artifact-stores=/nowhere/stores.yaml"}, "/nowhere/stores.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tmp := temporary(t, os.Getuid())
			cmd := command(tmp, os.Getuid(), tc.args...)
			// Should it serve, it is told to end.
			defer time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Signal(syscall.SIGTERM) }).Stop()
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), tc.want) {
				t.Errorf("%v: %s\nwant it to contain %q", err, out, tc.want)
			}
			if names := left(t, tmp); len(names) > 0 {
				t.Errorf("it left %v", names)
			}
		})
	}
}
