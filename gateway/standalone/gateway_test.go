//go:build linux

package standalone_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// gateway is a berth-gateway --standalone that serves.
type gateway struct {
	t    *testing.T
	cmd  *exec.Cmd
	url  string
	tmp  string
	said *lines
	// header is what requests have besides.
	header http.Header
	// ended gives how it ended, once.
	ended <-chan error
}

// lines is the file that a process writes its standard error to: what it has said is
// there before it does anything else.
type lines struct {
	t    *testing.T
	file *os.File
}

func newLines(t *testing.T) *lines {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return &lines{t, file}
}

func (l *lines) String() string {
	text, err := os.ReadFile(l.file.Name())
	if err != nil {
		l.t.Error(err)
	}
	return string(text)
}

// temporary makes a directory for temporary files of a user. That of the tests has
// too long a name for sockets.
func temporary(t *testing.T, user int) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "berth-t-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chown(dir, user, user); err != nil && user != os.Getuid() {
		t.Fatal(err)
	}
	return dir
}

// command is a gateway's, which dies with the test.
func command(tmp string, user int, args ...string) *exec.Cmd {
	args = append([]string{"--standalone", "--listen=127.0.0.1:0", "--health-listen=127.0.0.1:0"}, args...)
	cmd := exec.Command(gatewayProgram, args...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + tmp, "SECRET_OF_THE_DEVELOPER=x"}
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if user != os.Getuid() {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}
	}
	return cmd
}

// start starts a gateway and waits until it says how it is used.
func start(t *testing.T, tmp string, user int, args ...string) *gateway {
	t.Helper()
	cmd := command(tmp, user, args...)
	g := &gateway{t: t, cmd: cmd, tmp: tmp, said: newLines(t)}
	cmd.Stderr = g.said.file
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout = in
	if err := errors.Join(cmd.Start(), in.Close()); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	g.ended = ended
	go func() {
		ended <- cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // fails only when it has ended
		for range ended {
		}
		if t.Failed() {
			t.Log(g.said)
		}
	})
	for scanner := bufio.NewScanner(out); scanner.Scan(); {
		if _, rest, ok := strings.Cut(scanner.Text(), "serves sessions on this machine at "); ok {
			g.url, _, _ = strings.Cut(rest, "/mcp")
		}
		if strings.Contains(scanner.Text(), "mcpServers") {
			return g
		}
	}
	t.Fatalf("the gateway ended without serving: %v\n%s", <-ended, g.said)
	return nil
}

// result is what a tool answered.
type result struct {
	IsError bool
	Content []struct{ Text, URI string }
	// StructuredContent has what these tests look at.
	StructuredContent struct {
		Stdout, Notice, Output, Content, URI string
		ProcessID                            string `json:"process_id"`
		ExitCode                             int    `json:"exit_code"`
	}
}

func (r *result) text() string {
	if len(r.Content) == 0 {
		return ""
	}
	return r.Content[0].Text
}

// call calls a tool, from any goroutine.
func (g *gateway) call(session, tool string, arguments any) (*result, error) {
	body, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": 1, "method": "tools/call",
		"params": map[string]any{"name": tool, "arguments": arguments},
	})
	if err != nil {
		return nil, err
	}
	status, answer, err := g.http(http.MethodPost, "/mcp", session, "application/json", string(body))
	if err != nil {
		return nil, err
	}
	_, data, ok := strings.Cut(answer, "data: ")
	var message struct{ Result *result }
	if err := json.Unmarshal([]byte(data), &message); !ok || err != nil || message.Result == nil {
		return nil, fmt.Errorf("%s: status %d: %s (%w)", tool, status, answer, err)
	}
	return message.Result, nil
}

func (g *gateway) http(method, path, session, kind, body string) (status int, answer string, err error) {
	r, err := http.NewRequestWithContext(g.t.Context(), method, g.url+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	maps.Copy(r.Header, g.header)
	r.Header.Set("Content-Type", kind)
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set("X-Session-ID", session)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data), err
}

// tool calls a tool, which must not fail.
func (g *gateway) tool(session, tool string, arguments any) *result {
	g.t.Helper()
	r, err := g.call(session, tool, arguments)
	if err != nil || r.IsError {
		g.t.Fatalf("%s of session %s: %+v, %v\n%s", tool, session, r, err, g.said)
	}
	return r
}

// bash runs a command and returns its output, and a notice that it must not have.
func (g *gateway) bash(session, command string) string {
	g.t.Helper()
	r := g.tool(session, "bash", map[string]any{"command": command})
	if r.StructuredContent.Notice != "" || r.StructuredContent.ExitCode != 0 {
		g.t.Fatalf("%q in session %s: %+v", command, session, r.StructuredContent)
	}
	return strings.TrimSpace(r.StructuredContent.Stdout)
}

// processes are those on this machine whose command line names the gateway's
// directory: its agents, and what a session started with it as an argument.
func (g *gateway) processes() (pids []int) {
	g.t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		g.t.Fatal(err)
	}
	for _, name := range all {
		line, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(line, []byte(g.tmp)) {
			continue // it has ended, or isn't ours
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// watch returns what waits until the processes have ended.
func (g *gateway) watch(pids []int) (wait func()) {
	g.t.Helper()
	var fds []int
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			g.t.Fatal(err)
		}
		g.t.Cleanup(func() { unix.Close(fd) })
		fds = append(fds, fd)
	}
	return func() {
		g.t.Helper()
		for i, fd := range fds {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 10_000)
			if n != 1 || err != nil {
				g.t.Errorf("process %d still runs: %v", pids[i], err)
			}
		}
	}
}

// left is what is in the directory of temporary files.
func left(t *testing.T, tmp string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(tmp)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
