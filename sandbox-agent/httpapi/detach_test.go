package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/artifact"
	"github.com/berth-dev/berth/sandbox-agent/detached"
	"github.com/berth-dev/berth/sandbox-agent/output"
	"github.com/berth-dev/berth/sandbox-agent/shell"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// slowShell runs each command for as long as its text says, or until it is
// cancelled.
type slowShell struct{ fakeShell }

func (*slowShell) Run(ctx context.Context, c shell.Command) (shell.Result, error) {
	if err := c.Turn(ctx); err != nil {
		return shell.Result{}, err
	}
	d, err := time.ParseDuration(c.Text)
	if err != nil {
		return shell.Result{}, errors.New("no shell for it")
	}
	select {
	case <-time.After(d):
		text := []byte(c.Text + strings.Repeat("!", c.OutputBytes/2))
		return shell.Result{ExitCode: 3, Stdout: output.Stream{Head: text, Total: int64(len(text))}}, nil
	case <-ctx.Done():
		return shell.Result{ExitCode: wire.ExitKilled}, nil
	}
}

// detaching is a server that detaches, whose time is that of its bubble.
func detaching(t testing.TB) *Server {
	s, _ := fixture(t, anyone{})
	s.shell = &slowShell{}
	s.KeepDetached(detached.New([]string{t.TempDir()}, artifact.SystemClock{}))
	return s
}

func begin(ctx context.Context, s *Server, body, accept string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, wire.ExecPath, strings.NewReader(body))
	r.Header.Set("Content-Type", contentJSON)
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func stateOf(t *testing.T, s *Server, query string) (wire.ExecState, int) {
	t.Helper()
	status, body := call(s, http.MethodGet, wire.ExecPath+"/a"+query, "")
	var state wire.ExecState
	if err := json.Unmarshal([]byte(body), &state); err != nil {
		t.Fatalf("%d %.200s: %v", status, body, err)
	}
	return state, status
}

func TestACommandIsDetachedAtItsTime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		takes time.Duration
		want  int
	}{
		"faster": {2*time.Second - 1, http.StatusOK},
		"slower": {2*time.Second + 1, http.StatusAccepted},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := detaching(t)
			began := time.Now()
			w := begin(t.Context(), s, fmt.Sprintf(`{"command":"%s","id":"a","detach_after":2}`, c.takes), "")
			if w.Code != c.want || time.Since(began) != min(c.takes, 2*time.Second) {
				t.Errorf("%s: %d after %v", name, w.Code, time.Since(began))
			}
			if c.want == http.StatusOK {
				if _, status := stateOf(t, s, ""); status != http.StatusNotFound {
					t.Errorf("%s: %d for one that wasn't detached", name, status)
				}
				return
			}
			if state, _ := stateOf(t, s, ""); !state.Running || state.ID != "a" || !state.Sent.Equal(began) {
				t.Errorf("%s: state %+v", name, state)
			}
			state, _ := stateOf(t, s, "?wait=60")
			if state.Running || state.Result == nil || state.Result.ExitCode != 3 || time.Since(began) != c.takes {
				t.Errorf("%s: at its end after %v: %+v", name, time.Since(began), state)
			}
		})
	}
}

// TestADetachedResultIsThatOfACall: byte for byte, but for what differs in time.
func TestADetachedResultIsThatOfACall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := detaching(t)
		plain := begin(t.Context(), s, `{"command":"5s","max_output_bytes":100000}`, "").Body.Bytes()
		begin(t.Context(), s, `{"command":"5s","id":"a","detach_after":1,"max_output_bytes":100000}`, "")
		_, body := call(s, http.MethodGet, wire.ExecPath+"/a?wait=60", "")
		var state struct{ Result json.RawMessage }
		if err := json.Unmarshal([]byte(body), &state); err != nil || !bytes.Equal(state.Result, bytes.TrimSpace(plain)) {
			t.Errorf("%v: %.200s, want %.200s", err, state.Result, plain)
		}
		if s.unread.held != 0 {
			t.Errorf("%d bytes of room are held", s.unread.held)
		}
	})
}

// TestBeforeItIsDetachedACommandEndsWithItsCall, and afterwards it doesn't.
func TestBeforeItIsDetachedACommandEndsWithItsCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := detaching(t)
		for _, after := range []time.Duration{time.Second, 3 * time.Second} {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			began := time.Now()
			begin(ctx, s, fmt.Sprintf(`{"command":"1m","id":"%v","detach_after":2}`, after), "")
			<-time.After(after - time.Since(began))
			cancel()
			synctest.Wait()
			if want := after > 2*time.Second; s.commands.cancel(after.String()) != want {
				t.Errorf("the caller gone after %v: running %v", after, !want)
			}
		}
	})
}

func TestADetachedCommandIsCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := detaching(t)
		begin(t.Context(), s, `{"command":"1h","id":"a","detach_after":1}`, "")
		for range 2 { // and once more, when it has ended
			if status, body := call(s, http.MethodDelete, wire.ExecPath+"/a", ""); status != http.StatusNoContent {
				t.Fatalf("cancel: %d %s", status, body)
			}
			state, _ := stateOf(t, s, "?wait=1")
			if state.Running || !state.Cancelled || state.Result == nil || state.Result.ExitCode != wire.ExitKilled {
				t.Errorf("state %+v", state)
			}
		}
		if status, _ := call(s, http.MethodDelete, wire.ExecPath+"/b", ""); status != http.StatusNotFound {
			t.Errorf("an unknown one: %d", status)
		}
		if status, _ := call(s, http.MethodDelete, wire.ExecPath+"/a?wait=1", ""); status != http.StatusBadRequest {
			t.Errorf("with a query: %d", status)
		}
	})
}

// TestADetachedCommandIsActivity until its end, and lets the agent's own wait.
func TestADetachedCommandIsActivity(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := detaching(t)
		begin(t.Context(), s, `{"command":"1m","id":"a","detach_after":1}`, "")
		if a := seen(t, s); a.Running != 1 || a.Other != 0 || a.IdleMS != 0 {
			t.Errorf("while it runs: %+v", a)
		}
		began := time.Now()
		s.Drain(t.Context())
		synctest.Wait()
		if a := seen(t, s); a.Running != 0 || a.Other != 0 || time.Since(began) != 59*time.Second {
			t.Errorf("drained after %v: %+v", time.Since(began), a)
		}
	})
}

func TestADetachedCommandThatDoesNotRunSaysWhy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := detaching(t)
		s.unread.turn <- struct{}{} // all wait
		begin(t.Context(), s, `{"command":"no time","id":"a","detach_after":1}`, "")
		<-s.unread.turn
		if state, _ := stateOf(t, s, "?wait=1"); state.Error == nil || state.Error.Code != wire.CodeInternal || state.Result != nil {
			t.Errorf("state %+v", state)
		}
	})
}

func TestDetachIsChecked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := detaching(t)
		begin(t.Context(), s, `{"command":"1s","id":"taken","detach_after":0.5}`, "")
		for name, c := range map[string]struct{ body, accept, code string }{
			"negative":  {`{"command":"1s","id":"b","detach_after":-1}`, "", wire.CodeBadRequest},
			"no id":     {`{"command":"1s","detach_after":1}`, "", wire.CodeBadRequest},
			"in frames": {`{"command":"1s","id":"b","detach_after":1}`, wire.FramesType, wire.CodeBadRequest},
			"id taken":  {`{"command":"1s","id":"taken","detach_after":1}`, "", wire.CodeIDInUse},
		} {
			if w := begin(t.Context(), s, c.body, c.accept); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `"`+c.code+`"`) {
				t.Errorf("%s: %d %s", name, w.Code, w.Body)
			}
		}
		for query, want := range map[string]int{
			"?wait=0": 200, "?wait=0.001": 200, "?wait=1&wait=1": 400, "?wait=-1": 400, "?wait=": 400, "?limit=1": 400,
		} {
			if status, body := call(s, http.MethodGet, wire.ExecPath+"/taken"+query, ""); status != want {
				t.Errorf("%s: %d %s", query, status, body)
			}
		}
		// A long poll is cut.
		begin(t.Context(), s, `{"command":"1h","id":"a","detach_after":1}`, "")
		began := time.Now()
		if state, _ := stateOf(t, s, "?wait=999"); !state.Running || time.Since(began) != wire.MaxExecWait*time.Second {
			t.Errorf("waited %v: %+v", time.Since(began), state)
		}
		call(s, http.MethodDelete, wire.ExecPath+"/a", "")
	})
}
