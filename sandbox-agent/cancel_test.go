package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

func TestIDInUse(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	release, held := a.hold(t, "same")
	resp, body := a.raw(t, http.MethodPost, "/v1/exec", "application/json", `{"command":"touch ran","id":"same"}`)
	if resp.StatusCode != 400 || errorCode(t, body) != "id_in_use" {
		t.Errorf("want 400 id_in_use, got %d %s", resp.StatusCode, body)
	}
	release()
	<-held
	if r := a.exec(t, client.ExecRequest{Command: "ls ran", ID: "same"}); r.ExitCode != 2 {
		t.Errorf("want the id free again and nothing run, got %+v", r)
	}
}

func TestCancelRunning(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	a.output(t, "x=kept")
	release, result := a.hold(t, "run")
	defer func() { _ = release }()
	if err := a.client.CancelExec(t.Context(), a.pod, "run"); err != nil {
		t.Fatal(err)
	}
	if r := <-result; r.ExitCode != 137 || r.TimedOut || r.Stdout != "" {
		t.Errorf("want 137 without timed_out, got %+v", r)
	}
	if got := a.output(t, "echo $x"); got != "kept\n" {
		t.Errorf("state after cancel: %q", got)
	}
	if err := a.client.CancelExec(t.Context(), a.pod, "run"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("want ErrNotFound for a command that has ended, got %v", err)
	}
}

func TestCancelledWhileQueuedNeverRuns(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	release, held := a.hold(t, "")
	queued := make(chan *client.ExecResult, 1)
	go func() {
		r, err := a.client.Exec(t.Context(), a.pod, client.ExecRequest{Command: "touch ran", ID: "queued"}, 0)
		if err != nil {
			t.Error(err)
		}
		queued <- r
	}()
	for a.client.CancelExec(t.Context(), a.pod, "queued") != nil {
		if t.Context().Err() != nil {
			return
		}
	}
	if r := <-queued; r.ExitCode != 137 || !strings.Contains(r.Notice, "nothing ran") {
		t.Errorf("want a cancelled result, got %+v", r)
	}
	release()
	<-held
	if got := a.output(t, "ls"); strings.Contains(got, "ran") {
		t.Error("a cancelled command ran")
	}
}

func TestClientGoneIsCancel(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	a.output(t, "mkfifo held")
	conn, err := net.Dial("tcp", strings.TrimPrefix(a.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	body := `{"command":"echo > held; sleep 777"}`
	fmt.Fprintf(conn, "POST /v1/exec HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s",
		a.token(t, http.MethodPost, "/v1/exec"), len(body), body)
	a.fifo(t, "held", false)
	conn.Close()
	// The next command's turn comes only when that one was killed.
	if got := a.output(t, "pgrep -xc sleep || true"); got != "0\n" {
		t.Errorf("processes of a caller that is gone: %q", got)
	}
}
