package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

func TestInput(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	p := a.background(t, `wc -c; exec 0<&-; echo closed; sleep 1000`)
	data := strings.Repeat("é", 300_000)
	if n := a.input(t, p.ID, client.ProcessInput{Data: data, EOF: true}); n != len(data) {
		t.Errorf("taken: %d of %d", n, len(data))
	}
	a.until(t, p.ID, "600000\nclosed\n")
	if _, err := a.client.ProcessInput(t.Context(), a.pod, p.ID, client.ProcessInput{Data: "x"}); !errors.Is(err, client.ErrInputClosed) {
		t.Errorf("after end-of-file: got %v", err)
	}
	if _, err := a.client.ProcessInput(t.Context(), a.pod, p.ID, client.ProcessInput{Terminal: &client.Terminal{Rows: 1}}); err == nil {
		t.Error("want a resize without a terminal refused")
	}
	q := a.background(t, `kill -STOP $$; cat`)
	if n := a.input(t, q.ID, client.ProcessInput{Data: data, EOF: true}); n == 0 || n == len(data) {
		t.Errorf("a stopped process took %d of %d", n, len(data))
	}
	a.signal(t, q.ID, "KILL")
	a.ended(t, q.ID)
	if _, err := a.client.ProcessInput(t.Context(), a.pod, q.ID, client.ProcessInput{EOF: true}); !errors.Is(err, client.ErrNotRunning) {
		t.Errorf("after its end: got %v", err)
	}
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	p := a.spawn(t, client.ProcessRequest{Command: `tty; stty size; echo "$TERM"; trap 'stty size' WINCH; trap 'echo int' INT; echo ready; while :; do read -r line && echo "<$line>" || break; done; echo eof`, Terminal: &client.Terminal{}})
	if !p.Terminal {
		t.Errorf("got %+v", p)
	}
	if got := a.until(t, p.ID, "ready\r\n"); !strings.HasPrefix(got, "/dev/pts/") || !strings.Contains(got, "24 80\r\nxterm-256color\r\n") {
		t.Errorf("got %q", got)
	}
	a.input(t, p.ID, client.ProcessInput{Terminal: &client.Terminal{Rows: 40, Cols: 132}})
	a.input(t, p.ID, client.ProcessInput{Data: "\n"}) // bash runs a trap after its read
	a.until(t, p.ID, "40 132\r\n")
	a.input(t, p.ID, client.ProcessInput{Data: "hé\r"})
	a.until(t, p.ID, "<hé>\r\n")
	a.input(t, p.ID, client.ProcessInput{EOF: true})
	a.until(t, p.ID, "eof\r\n")
	if code := a.ended(t, p.ID); code != 0 {
		t.Errorf("got exit code %d", code)
	}
	// ^C by the terminal, to the group in its foreground.
	p = a.spawn(t, client.ProcessRequest{Command: `sh -c 'echo on; exec sleep 1000'; echo "code $?"`, Terminal: &client.Terminal{Rows: 1, Cols: 4096}})
	a.until(t, p.ID, "on\r\n")
	a.input(t, p.ID, client.ProcessInput{Data: "\x03"})
	if code := a.ended(t, p.ID); code != 130 {
		t.Errorf("got exit code %d", code)
	}
	// A program that takes over the terminal as an editor does.
	p = a.spawn(t, client.ProcessRequest{Command: `stty raw -echo; echo ready; dd bs=1 count=3 2>/dev/null | od -An -tx1; stty sane`, Terminal: &client.Terminal{}})
	a.until(t, p.ID, "ready\n")
	a.input(t, p.ID, client.ProcessInput{Data: "\x03\x1b\x04"})
	a.until(t, p.ID, " 03 1b 04")
	// An interactive shell has job control.
	p = a.spawn(t, client.ProcessRequest{Command: `bash --norc -i`, Terminal: &client.Terminal{}})
	a.input(t, p.ID, client.ProcessInput{Data: "sleep 1000 &\rjobs\r"})
	a.until(t, p.ID, "Running")
	a.input(t, p.ID, client.ProcessInput{Data: "exit 6\r"})
	a.until(t, p.ID, "")
	if code := a.ended(t, p.ID); code != 6 {
		t.Errorf("got exit code %d", code)
	}
}
