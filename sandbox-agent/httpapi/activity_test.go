package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/sandbox-agent/shell"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// stoppedClock goes when it is told to.
type stoppedClock struct{ at atomic.Int64 }

func (c *stoppedClock) now() time.Time          { return time.Unix(0, c.at.Load()) }
func (c *stoppedClock) advance(d time.Duration) { c.at.Add(int64(d)) }

// clocked returns a server whose session began now by the returned clock.
func clocked(t testing.TB) (*Server, *fakeShell, *stoppedClock) {
	t.Helper()
	s, sh := fixture(t, anyone{})
	clock := &stoppedClock{}
	s.activity.now, s.activity.since = clock.now, clock.now()
	return s, sh, clock
}

// call sends a request and returns the answer's status and body.
func call(s *Server, method, path, body string) (int, string) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", contentJSON)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func seen(t testing.TB, s *Server) (a wire.Activity) {
	t.Helper()
	status, body := call(s, http.MethodGet, wire.ActivityPath, "")
	if err := json.Unmarshal([]byte(body), &a); err != nil || status != http.StatusOK {
		t.Fatalf("activity: %d %s", status, body)
	}
	return a
}

func quiesced(t testing.TB, s *Server, idle time.Duration) (a wire.Activity) {
	t.Helper()
	status, body := call(s, http.MethodPost, wire.QuiescePath, fmt.Sprintf(`{"idle_ms":%d}`, idle.Milliseconds()))
	if err := json.Unmarshal([]byte(body), &a); err != nil || status != http.StatusOK {
		t.Fatalf("quiesce: %d %s", status, body)
	}
	return a
}

// heldShell runs each command until it is let go.
type heldShell struct {
	fakeShell
	began, release chan struct{}
}

func (h *heldShell) Run(context.Context, shell.Command) (shell.Result, error) {
	h.began <- struct{}{}
	<-h.release
	return shell.Result{}, nil
}

func TestActivityCountsCommandsFromAdmissionToEnd(t *testing.T) {
	t.Parallel()
	s, _, clock := clocked(t)
	held := &heldShell{began: make(chan struct{}), release: make(chan struct{})}
	s.shell = held
	clock.advance(3 * time.Second)
	if diff := cmp.Diff(wire.Activity{IdleMS: 3000}, seen(t, s)); diff != "" {
		t.Errorf("idle (-want +got):\n%s", diff)
	}

	var ended sync.WaitGroup
	for range 3 {
		ended.Go(func() { call(s, http.MethodPost, wire.ExecPath, `{"command":"true"}`) })
		<-held.began
	}
	// A call whose body is still on its way is activity too.
	reading, write := io.Pipe()
	r := httptest.NewRequest(http.MethodPost, wire.ArtifactsPath, reading)
	r.Header.Set("Content-Type", contentJSON)
	ended.Go(func() { s.ServeHTTP(httptest.NewRecorder(), r) })
	if _, err := write.Write([]byte("{")); err != nil {
		t.Fatal(err)
	}
	clock.advance(time.Minute)
	want := wire.Activity{Running: 1, Queued: 2, Other: 1}
	if diff := cmp.Diff(want, seen(t, s)); diff != "" {
		t.Errorf("busy (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, quiesced(t, s, 0)); diff != "" {
		t.Errorf("quiesce while busy (-want +got):\n%s", diff)
	}

	write.Close()
	close(held.release)
	ended.Wait()
	clock.advance(1500 * time.Microsecond)
	if diff := cmp.Diff(wire.Activity{IdleMS: 1}, seen(t, s)); diff != "" {
		t.Errorf("idle again (-want +got):\n%s", diff)
	}
}

func TestWhatIsNoActivity(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ method, path, body string }{
		"health":             {http.MethodGet, wire.HealthPath, ""},
		"activity":           {http.MethodGet, wire.ActivityPath, ""},
		"quiesce":            {http.MethodPost, wire.QuiescePath, `{"idle_ms":9000000}`},
		"quiesce, malformed": {http.MethodPost, wire.QuiescePath, `{"idle_ms":-1}`},
		"bind":               {http.MethodPut, wire.SessionPath, `{"uid":"local","limits":{}}`},
		"unknown route":      {http.MethodGet, "/v1/nothing", ""},
		"wrong method":       {http.MethodGet, wire.ExecPath, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _, clock := clocked(t)
			clock.advance(time.Hour)
			call(s, c.method, c.path, c.body)
			if got := seen(t, s).IdleMS; got != time.Hour.Milliseconds() {
				t.Errorf("idle for %d ms, want an hour", got)
			}
		})
	}
}

func TestWhatIsActivityEvenIfItIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ method, path, body string }{
		"exec":                 {http.MethodPost, wire.ExecPath, `{"command":"true"}`},
		"exec, malformed":      {http.MethodPost, wire.ExecPath, `{`},
		"cancel":               {http.MethodDelete, wire.ExecPath + "/x", ""},
		"export":               {http.MethodPost, wire.ArtifactsPath, `{"path":"x"}`},
		"read of an artifact":  {http.MethodGet, wire.ArtifactsPath + "/x", ""},
		"drop of an artifact":  {http.MethodDelete, wire.ArtifactsPath + "/x", ""},
		"handler that panics":  {http.MethodPost, wire.ExecPath, `{"command":"panic"}`},
		"queue that is full":   {http.MethodPost, wire.ExecPath, `{"command":"full"}`},
		"shell that is closed": {http.MethodPost, wire.ExecPath, `{"command":"closed"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _, clock := clocked(t)
			s.shell = &failingShell{}
			clock.advance(time.Hour)
			func() {
				defer func() { _ = recover() }() // net/http does the same
				call(s, c.method, c.path, c.body)
			}()
			if diff := cmp.Diff(wire.Activity{}, seen(t, s)); diff != "" {
				t.Errorf("just ended (-want +got):\n%s", diff)
			}
		})
	}
}

// failingShell fails as the command says.
type failingShell struct{ fakeShell }

func (*failingShell) Run(_ context.Context, c shell.Command) (shell.Result, error) {
	switch c.Text {
	case "panic":
		panic("a defect")
	case "full":
		return shell.Result{}, shell.ErrQueueFull
	case "closed":
		return shell.Result{}, shell.ErrClosed
	}
	return shell.Result{}, nil
}

// fakeBackground says what it is told.
type fakeBackground struct {
	Processes
	running int
	ended   time.Time
}

func (b fakeBackground) Activity() (int, time.Time) { return b.running, b.ended }

func TestBackgroundProcessesCountAsTheSessionSays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		counts     bool
		background fakeBackground
		want       wire.Activity
		quiesces   bool
	}{
		"running, not counted": {false, fakeBackground{running: 2}, wire.Activity{Processes: 2, IdleMS: 10_000}, true},
		"running, counted":     {true, fakeBackground{running: 2}, wire.Activity{Processes: 2}, false},
		"ended, not counted":   {false, fakeBackground{ended: time.Unix(4, 0)}, wire.Activity{IdleMS: 10_000}, true},
		"ended, counted":       {true, fakeBackground{ended: time.Unix(4, 0)}, wire.Activity{IdleMS: 6000}, false},
		"none ever, counted":   {true, fakeBackground{}, wire.Activity{IdleMS: 10_000}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _, clock := clocked(t)
			s.processes = c.background
			if status, body := call(s, http.MethodPut, wire.SessionPath, fmt.Sprintf(`{"uid":"local","limits":{},"background_is_activity":%v}`, c.counts)); status != http.StatusNoContent {
				t.Fatalf("bind: %d %s", status, body)
			}
			clock.advance(10 * time.Second)
			if diff := cmp.Diff(c.want, seen(t, s)); diff != "" {
				t.Errorf("activity (-want +got):\n%s", diff)
			}
			if got := quiesced(t, s, 10*time.Second); got.Quiesced != c.quiesces {
				t.Errorf("quiesced: want %v, got %+v", c.quiesces, got)
			}
		})
	}
}

func TestSessionIsNotIdleForLongerThanItExists(t *testing.T) {
	t.Parallel()
	s, _, clock := clocked(t)
	s.session = session{}
	clock.advance(time.Hour)
	if got := seen(t, s).IdleMS; got != time.Hour.Milliseconds() {
		t.Errorf("an agent without a session was idle for %d ms, want an hour", got)
	}
	bind := func() {
		if status, body := call(s, http.MethodPut, wire.SessionPath, `{"uid":"a","limits":{}}`); status != http.StatusNoContent {
			t.Fatalf("bind: %d %s", status, body)
		}
	}
	bind()
	clock.advance(time.Second)
	bind() // again: no activity
	if got := seen(t, s).IdleMS; got != 1000 {
		t.Errorf("a session of one second was idle for %d ms", got)
	}
}

func TestQuiesceAtOneBelowAndOneAboveTheIdleTime(t *testing.T) {
	t.Parallel()
	for idle, want := range map[time.Duration]bool{
		59_999 * time.Millisecond: true, time.Minute: true, 60_001 * time.Millisecond: false,
	} {
		s, _, clock := clocked(t)
		clock.advance(time.Minute)
		if got := quiesced(t, s, idle); got != (wire.Activity{IdleMS: 60_000, Quiesced: want}) {
			t.Errorf("idle for a minute, asked for %v: %+v", idle, got)
		}
		if got := quiesced(t, s, 2*time.Minute); got.Quiesced != want {
			t.Errorf("asked again after %v: %+v", idle, got)
		}
	}
}

func TestQuiesceRefusesAbsurdTimes(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int{
		`{"idle_ms":-1}`: http.StatusBadRequest,
		fmt.Sprintf(`{"idle_ms":%d}`, maxIdleMS+1):             http.StatusBadRequest,
		fmt.Sprintf(`{"idle_ms":%d}`, int64(math.MaxInt64)):    http.StatusBadRequest,
		`{"idle_ms":9223372036854775808}`:                      http.StatusBadRequest,
		`{"idle_ms":1.5}`:                                      http.StatusBadRequest,
		`{"idle_ms":"1"}`:                                      http.StatusBadRequest,
		`{"idle":1}`:                                           http.StatusBadRequest,
		`{"idle_ms":` + strings.Repeat("0", wire.MaxSmallBody): http.StatusRequestEntityTooLarge,
		fmt.Sprintf(`{"idle_ms":%d}`, maxIdleMS):               http.StatusOK,
	} {
		s, _, _ := clocked(t)
		if status, answer := call(s, http.MethodPost, wire.QuiescePath, body); status != want {
			t.Errorf("%.40s: want %d, got %d %s", body, want, status, answer)
		}
		if seen(t, s).Quiesced {
			t.Errorf("%.40s quiesced", body)
		}
	}
}

// untouched is a body that nobody may read.
type untouched struct{ t *testing.T }

func (u untouched) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, errors.New("not to be read")
}

func TestQuiescedSessionTakesNoCallAndReadsNoBody(t *testing.T) {
	t.Parallel()
	s, sh, _ := clocked(t)
	if !quiesced(t, s, 0).Quiesced {
		t.Fatal("an idle session was not quiesced")
	}
	for _, rt := range s.routes {
		for method := range rt.methods {
			path := rt.path
			if strings.HasSuffix(path, "/") {
				path += "x"
			}
			if rt.open || rt.passive {
				continue
			}
			r := httptest.NewRequest(method, path, untouched{t})
			r.Header.Set("Content-Type", contentJSON)
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if w.Code != http.StatusGone || !strings.Contains(w.Body.String(), `"quiesced"`) {
				t.Errorf("%s %s: want 410, got %d %s", method, path, w.Code, w.Body)
			}
		}
	}
	if len(sh.ran) > 0 {
		t.Errorf("ran %v", sh.ran)
	}
	if status, _ := call(s, http.MethodGet, wire.HealthPath, ""); status != http.StatusOK {
		t.Errorf("health: %d", status)
	}
	if a := seen(t, s); !a.Quiesced {
		t.Errorf("activity: %+v", a)
	}
}

// TestQuiesceIsAtomicAgainstCommands: whatever the order, no command runs that
// was not done, or in the way, when the session was found idle.
func TestQuiesceIsAtomicAgainstCommands(t *testing.T) {
	t.Parallel()
	for range 200 {
		s, _ := fixture(t, anyone{})
		counting := &countingShell{}
		s.shell = counting
		var callers sync.WaitGroup
		var served atomic.Int64
		start := make(chan struct{})
		for range 8 {
			callers.Go(func() {
				<-start
				for range 20 {
					if status, body := call(s, http.MethodPost, wire.ExecPath, `{"command":"true"}`); status == http.StatusOK {
						served.Add(1)
					} else if status != http.StatusGone {
						t.Errorf("%d %s", status, body)
					}
				}
			})
		}
		close(start)
		for !s.quiesceIf(0).Quiesced {
		}
		before := counting.begun.Load()
		if running := counting.running.Load(); running != 0 {
			t.Errorf("quiesced while %d ran", running)
		}
		callers.Wait()
		if after := counting.begun.Load(); after != before || after != served.Load() {
			t.Fatalf("%d commands had begun when the session was quiesced, %d in the end, %d were answered", before, after, served.Load())
		}
	}
}

// countingShell counts what it runs.
type countingShell struct {
	fakeShell
	begun, running atomic.Int64
}

func (c *countingShell) Run(context.Context, shell.Command) (shell.Result, error) {
	c.begun.Add(1)
	c.running.Add(1)
	defer c.running.Add(-1)
	return shell.Result{}, nil
}
