package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// half sends half of a file's 100 bytes by hand, once the agent takes them, and
// returns the connection.
func (a *agent) half(t *testing.T, method, path string, query url.Values) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(a.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "%s %s?%s HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\nContent-Type: application/octet-stream\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n",
		method, path, query.Encode(), a.token(t, method, path))
	const goOn = "HTTP/1.1 100 Continue\r\n\r\n"
	got := make([]byte, len(goOn))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != goOn {
		t.Fatalf("%q, %v, want to be told to go on", got, err)
	}
	fmt.Fprint(conn, strings.Repeat("x", 50))
	return conn.(*net.TCPConn)
}

func (a *agent) halfUploaded(t *testing.T, name string) *net.TCPConn {
	t.Helper()
	conn := a.half(t, http.MethodPost, "/v1/files", url.Values{"name": {name}})
	if got := a.uploaded(t); len(got) != 1 || !strings.HasPrefix(got[0], "."+name+".upload-") {
		t.Errorf("%q is there during the upload", got)
	}
	return conn
}

func (a *agent) halfWritten(t *testing.T, dir, name string) *net.TCPConn {
	t.Helper()
	conn := a.half(t, http.MethodPut, "/v1/file", url.Values{"path": {filepath.Join(dir, name)}})
	if hidden, err := filepath.Glob(filepath.Join(a.workspace, dir, "."+name+".write-*")); err != nil || len(hidden) != 1 {
		t.Errorf("%q is there during the write", hidden)
	}
	return conn
}

// broken ends what half began, and waits for the answer.
func broken(t *testing.T, conn *net.TCPConn) {
	t.Helper()
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 400 ") {
		t.Errorf("%q, %v, want 400", answer, err)
	}
}

func TestUploadThatBreaksOffLeavesNothing(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	broken(t, a.halfUploaded(t, "half.txt"))
	if got := a.uploaded(t); len(got) != 0 {
		t.Errorf("%q is left", got)
	}
}

func TestUploadThatOutlastsTheAgentLeavesNothing(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	a.halfUploaded(t, "half.txt")
	a.terminate(t)
	if err := <-a.exited; err != nil {
		t.Errorf("the agent ended with %v\n%s", err, a.log)
	}
	if got := a.uploaded(t); len(got) != 0 {
		t.Errorf("%q is left", got)
	}
}

func TestUploadCutByAKillIsNeverVisible(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	a.halfUploaded(t, "half.txt")
	if err := a.process.Kill(); err != nil {
		t.Fatal(err)
	}
	for range a.exited {
	}
	if got := a.uploaded(t); len(got) != 1 || !strings.HasPrefix(got[0], ".half.txt.upload-") {
		t.Errorf("%q is there, want the hidden file alone", got)
	}
}

// A write whose caller goes leaves nothing, and a line in the log without its path.
func TestWriteThatBreaksOffLeavesNothing(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	a.writeFile(t, "secret", "old")
	broken(t, a.halfWritten(t, ".", "secret"))
	broken(t, a.halfWritten(t, "made/here", "secret"))
	if got := a.output(t, "ls -A && cat secret"); got != "secret\nold" {
		t.Errorf("left %q", got)
	}
	if log := a.log.String(); strings.Count(log, `"msg":"File write failed"`) != 2 || strings.Contains(log, "secret") {
		t.Errorf("want two lines without the path: %s", log)
	}
}

func TestWriteThatOutlastsTheAgentLeavesNothing(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	a.halfWritten(t, "made", "f")
	a.terminate(t)
	if err := <-a.exited; err != nil {
		t.Errorf("the agent ended with %v\n%s", err, a.log)
	}
	if entries, err := os.ReadDir(a.workspace); err != nil || len(entries) != 0 {
		t.Errorf("%v is left, %v", entries, err)
	}
}

func TestWriteCutByAKillIsNeverVisible(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	a.writeFile(t, "f", "old")
	a.halfWritten(t, ".", "f")
	if err := a.process.Kill(); err != nil {
		t.Fatal(err)
	}
	for range a.exited {
	}
	if got, err := os.ReadFile(filepath.Join(a.workspace, "f")); err != nil || string(got) != "old" {
		t.Errorf("%q, %v", got, err)
	}
}
