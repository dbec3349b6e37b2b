package main

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

const (
	aKey    = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	another = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// holdCall is hold of a command that is part of a call of that key.
func (a *agent) holdCall(t *testing.T, key, name string) (result chan *client.ExecResult) {
	t.Helper()
	result = make(chan *client.ExecResult, 1)
	go func() {
		r, err := a.client.Exec(client.WithCall(t.Context(), key, client.NewCallID()), a.pod, client.ExecRequest{Command: "echo > " + name + "; sleep 777"}, 0)
		if err != nil {
			t.Errorf("held command: %v", err)
		}
		result <- r
	}()
	a.fifo(t, name, false)
	return result
}

// Who ends a call by its key need not be who made it: it may be another replica.
func TestCallIsEndedByItsKey(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	a.output(t, "x=kept; mkfifo held")
	result := a.holdCall(t, aKey, "held")
	if err := a.client.CancelCall(t.Context(), a.pod, another); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("another key: %v, want ErrNotFound", err)
	}
	began := time.Now()
	if err := a.client.CancelCall(t.Context(), a.pod, aKey); err != nil {
		t.Fatal(err)
	}
	if r := <-result; r.ExitCode != 137 || r.TimedOut || !strings.Contains(r.Notice, "The command was cancelled.") {
		t.Errorf("want 137 and a notice that says why, got %+v", r)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the command's end took %v", took)
	}
	// A word that comes twice, or late, touches no command that follows.
	if err := a.client.CancelCall(t.Context(), a.pod, aKey); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("a second word: %v, want ErrNotFound", err)
	}
	r, err := a.client.Exec(client.WithCall(t.Context(), aKey, client.NewCallID()), a.pod, client.ExecRequest{Command: "echo $x; pgrep -xc sleep"}, 0)
	if err != nil || r.Stdout != "kept\n0\n" {
		t.Errorf("the next command of that key: %+v, %v; want the shell's state and no process left", r, err)
	}
}

func TestKeyOfTwoCallsEndsNeither(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	a.output(t, "mkfifo held go")
	results := make(chan *client.ExecResult)
	run := func(command string) {
		r, err := a.client.Exec(client.WithCall(t.Context(), aKey, client.NewCallID()), a.pod, client.ExecRequest{Command: command}, 0)
		if err != nil {
			t.Errorf("%s: %v", command, err)
		}
		results <- r
	}
	go run("echo > held; read < go; echo over")
	a.fifo(t, "held", false)
	go run("echo over")
	a.awaitQueued(t, 1)
	if err := a.client.CancelCall(t.Context(), a.pod, aKey); !errors.Is(err, client.ErrManyCalls) {
		t.Errorf("want ErrManyCalls, got %v", err)
	}
	if ids, err := a.client.Calls(t.Context(), a.pod, aKey); err != nil || len(ids) != 2 || ids[0] == ids[1] {
		t.Errorf("calls %q, %v; want the ids of two", ids, err)
	}
	if ids, err := a.client.Calls(t.Context(), a.pod, another); err != nil || len(ids) != 0 {
		t.Errorf("calls %q, %v of another key, want none", ids, err)
	}
	a.fifo(t, "go", true)
	for range 2 {
		if r := <-results; r == nil || r.Stdout != "over\n" || r.ExitCode != 0 {
			t.Errorf("a call that was to go on: %+v", r)
		}
	}
}

// awaitCalls waits until so many calls are under way, but for commands that run.
// The agent may be about to note by which key: one that is ended then ends as well.
func (a *agent) awaitCalls(t *testing.T, n int) {
	t.Helper()
	for {
		is, err := a.client.Activity(t.Context(), a.pod)
		if err != nil {
			t.Fatal(err)
		}
		if is.Queued+is.Other >= n {
			return
		}
	}
}

// A call that waits its turn never runs, and what it was about to start isn't.
func TestQueuedCallThatIsEndedNeverRuns(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	release, held := a.hold(t, "")
	queued := make(chan *client.ExecResult, 1)
	go func() {
		r, err := a.client.Exec(client.WithCall(t.Context(), aKey, client.NewCallID()), a.pod, client.ExecRequest{Command: "touch ran"}, 0)
		if err != nil {
			t.Error(err)
		}
		queued <- r
	}()
	starting := make(chan error, 1)
	go func() {
		_, err := a.client.StartProcess(client.WithCall(t.Context(), another, client.NewCallID()), a.pod, client.ProcessRequest{Command: "touch started", ID: "p"})
		starting <- err
	}()
	a.awaitQueued(t, 1)
	a.awaitCalls(t, 2)
	if err := a.client.CancelCall(t.Context(), a.pod, aKey); err != nil {
		t.Errorf("cancel of a queued command: %v", err)
	}
	if err := a.client.CancelCall(t.Context(), a.pod, another); err != nil && !errors.Is(err, client.ErrNotFound) {
		t.Errorf("cancel of a start: %v", err)
	}
	if r := <-queued; r.ExitCode != 137 || !strings.Contains(r.Notice, "nothing ran") {
		t.Errorf("want a cancelled result, got %+v", r)
	}
	if err := <-starting; !errors.Is(err, client.ErrCancelled) {
		t.Errorf("start of a process: %v, want ErrCancelled", err)
	}
	release()
	<-held
	if got := a.output(t, "ls"); strings.Contains(got, "ran") || strings.Contains(got, "started") {
		t.Errorf("a cancelled call ran: %s", got)
	}
}

// The word may be faster than its call.
func TestCallThatWasEndedBeforeItCame(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	if err := a.client.CancelCall(t.Context(), a.pod, aKey); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("want ErrNotFound, got %v", err)
	}
	ctx := client.WithCall(t.Context(), aKey, client.NewCallID())
	if r, err := a.client.Exec(ctx, a.pod, client.ExecRequest{Command: "touch ran"}, 0); !errors.Is(err, client.ErrCancelled) {
		t.Errorf("want ErrCancelled, got %+v, %v", r, err)
	}
	if r, err := a.client.Exec(ctx, a.pod, client.ExecRequest{Command: "ls ran"}, 0); err != nil || r.ExitCode != 2 {
		t.Errorf("want the next call of the key to run, and nothing to have run before, got %+v, %v", r, err)
	}
}

func TestLongPollIsEndedByItsKey(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	if _, err := a.client.StartProcess(t.Context(), a.pod, client.ProcessRequest{Command: "sleep 777", ID: "p"}); err != nil {
		t.Fatal(err)
	}
	polled := make(chan error, 1)
	go func() {
		_, err := a.client.ProcessOutput(client.WithCall(t.Context(), aKey, client.NewCallID()), a.pod, "p", client.OutputQuery{Wait: time.Minute})
		polled <- err
	}()
	a.awaitCalls(t, 1)
	if err := a.client.CancelCall(t.Context(), a.pod, aKey); err != nil && !errors.Is(err, client.ErrNotFound) {
		t.Fatal(err)
	}
	if err := <-polled; !errors.Is(err, client.ErrCancelled) {
		t.Errorf("want ErrCancelled, got %v", err)
	}
	if p, err := a.client.Process(t.Context(), a.pod, "p"); err != nil || !p.Running {
		t.Errorf("the process itself: %+v, %v; want it to run on", p, err)
	}
}

// It is a word about a session's calls, so it needs none, and is no activity.
func TestCancelCallOfAnAgentWithoutASession(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{unbound: true})
	if err := a.client.CancelCall(t.Context(), a.pod, aKey); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("want ErrNotFound, got %v", err)
	}
}

func TestRefusalsAboutCalls(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	for name, tc := range map[string]struct {
		method, path, body string
		status             int
		code               string
	}{
		"short key":      {http.MethodDelete, "/v1/calls/" + aKey[1:], "", 400, "bad_request"},
		"long key":       {http.MethodDelete, "/v1/calls/" + aKey + "a", "", 400, "bad_request"},
		"upper case":     {http.MethodDelete, "/v1/calls/" + strings.ToUpper(aKey), "", 400, "bad_request"},
		"body":           {http.MethodDelete, "/v1/calls/" + aKey, "{}", 400, "bad_request"},
		"query":          {http.MethodDelete, "/v1/calls/" + aKey + "?x=1", "", 400, "bad_request"},
		"another method": {http.MethodPost, "/v1/calls/" + aKey, "", 405, "method_not_allowed"},
		"short, listed":  {http.MethodGet, "/v1/calls/" + aKey[1:], "", 400, "bad_request"},
	} {
		resp, body := a.raw(t, tc.method, tc.path, "application/json", tc.body)
		if resp.StatusCode != tc.status || errorCode(t, body) != tc.code {
			t.Errorf("%s: %d %s, want %d %s", name, resp.StatusCode, body, tc.status, tc.code)
		}
	}
	for name, values := range map[string][]string{
		"empty":      {""},
		"key alone":  {aKey},
		"short id":   {aKey + "." + another[1:]},
		"more":       {aKey + "." + another + "."},
		"twice":      {aKey + "." + another, aKey + "." + another},
		"upper case": {strings.ToUpper(aKey) + "." + another},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.url+"/v1/exec", strings.NewReader(`{"command":"touch ran"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Authorization": {"Bearer " + a.token(t, r.Method, "/v1/exec")}, "Content-Type": {"application/json"}, "Berth-Call": values}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 400 {
			t.Errorf("header %s: %d, want 400", name, resp.StatusCode)
		}
	}
	if got := a.output(t, "ls"); strings.Contains(got, "ran") {
		t.Error("a refused command ran")
	}
}
