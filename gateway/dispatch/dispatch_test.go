package dispatch

import (
	"context"
	"io"
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	berthv1alpha1 "github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// one is a store of one session, and its resolver.
type one struct {
	mu      sync.Mutex
	rec     *session.Record
	changed map[int]func()
	next    int
}

func newOne() *one {
	return &one{
		rec: &session.Record{
			Key: session.Key{Namespace: "n", Name: "s"}, UID: "u", Ready: true,
			PodUID: "p1", PodIP: netip.MustParseAddr("10.0.0.1"),
		},
		changed: map[int]func(){},
	}
}

func (o *one) Resolve(context.Context, session.Request) (*session.Record, error) {
	rec, _ := o.Get(session.Key{})
	return rec, nil
}

func (o *one) Get(session.Key) (*session.Record, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.rec, o.rec != nil
}

func (o *one) Watch(_ session.Key, changed func()) func() {
	o.mu.Lock()
	defer o.mu.Unlock()
	id := o.next
	o.next++
	o.changed[id] = changed
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.changed, id)
	}
}

func (*one) Suspect(*session.Record) {}

func (o *one) set(rec *session.Record) {
	o.mu.Lock()
	o.rec = rec
	var all []func()
	for _, f := range o.changed {
		all = append(all, f)
	}
	o.mu.Unlock()
	for _, f := range all {
		f()
	}
}

// slow is an agent whose commands take a minute.
type slow struct{ Agent }

func (slow) Exec(ctx context.Context, _ client.Pod, _ client.ExecRequest, _ time.Duration) (*client.ExecResult, error) {
	select {
	case <-time.After(time.Minute):
		return &client.ExecResult{}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Nobody waits out a time-out for a command whose pod is gone.
func TestCallUnderWayEndsWithItsPod(t *testing.T) {
	replaced := *newOne().rec
	replaced.PodUID = "p2"
	restarted := *newOne().rec
	restarted.Ready = false
	tests := map[string]struct {
		becomes *session.Record
		err     string
		after   time.Duration
	}{
		"session deleted":     {nil, "the session was deleted while the call ran", time.Second},
		"pod replaced":        {&replaced, "the session's pod was replaced while the call ran", time.Second + replacedGrace},
		"readiness flaps":     {&restarted, "", time.Minute},
		"nothing of interest": {newOne().rec, "", time.Minute},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newOne()
				d := New(slow{}, store, store, nil, slog.New(slog.DiscardHandler), func(string) {})
				start := time.Now()
				time.AfterFunc(time.Second, func() { store.set(tc.becomes) })
				_, err := d.Exec(t.Context(), session.Request{}, Command{Source: "x"})
				got := ""
				if err != nil {
					got = err.Error()
				}
				if took := time.Since(start); got != tc.err || took != tc.after {
					t.Errorf("error %q after %s, want %q after %s", got, took, tc.err, tc.after)
				}
				if n := len(store.changed); n != 0 {
					t.Errorf("%d watches left", n)
				}
			})
		})
	}
}

// broken is an agent whose connection breaks.
type broken struct{ Agent }

func (broken) Exec(context.Context, client.Pod, client.ExecRequest, time.Duration) (*client.ExecResult, error) {
	return nil, io.ErrUnexpectedEOF
}

// The cluster sees first that the agent does not answer, and then why.
func TestBrokenCallTellsHowItsContainerEnded(t *testing.T) {
	unreachable := *newOne().rec
	unreachable.Ready, unreachable.Reason = false, "AgentUnreachable"
	killed := unreachable
	killed.Reason = "OOMKilled"
	killed.Termination = &berthv1alpha1.Termination{Reason: "OOMKilled", Message: "memory", Time: metav1.Unix(1, 0)}
	const lost = "the connection to the sandbox was lost; what was asked may have run"
	tests := map[string]struct {
		first, second *session.Record
		err           string
		after         time.Duration
	}{
		"killed":           {&unreachable, &killed, lost + ": OOMKilled: memory", time.Second},
		"only unreachable": {&unreachable, &unreachable, lost + ": AgentUnreachable", causeWait},
		"nothing":          {newOne().rec, newOne().rec, lost, causeWait},
		"deleted":          {&unreachable, nil, lost + ": the session was deleted", time.Second},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newOne()
				d := New(broken{}, store, store, nil, slog.New(slog.DiscardHandler), func(string) {})
				start := time.Now()
				time.AfterFunc(time.Second/2, func() { store.set(tc.first) })
				time.AfterFunc(time.Second, func() { store.set(tc.second) })
				_, err := d.Exec(t.Context(), session.Request{}, Command{Source: "x"})
				if took := time.Since(start); err == nil || err.Error() != tc.err || took != tc.after {
					t.Errorf("error %v after %s, want %q after %s", err, took, tc.err, tc.after)
				}
			})
		})
	}
}

// R13: the session's limits decide; without any 60 s, and 300 s at most.
func TestTimeout(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		asked  int
		limits client.Limits
		want   time.Duration
	}{
		"nothing":                  {0, client.Limits{}, 60 * time.Second},
		"more than the maximum":    {301, client.Limits{}, 300 * time.Second},
		"template's default":       {0, client.Limits{CommandTimeoutDefault: 10}, 10 * time.Second},
		"template's maximum":       {900, client.Limits{CommandTimeoutMax: 600}, 600 * time.Second},
		"default above 300":        {0, client.Limits{CommandTimeoutDefault: 400}, 400 * time.Second},
		"default above maximum":    {0, client.Limits{CommandTimeoutDefault: 50, CommandTimeoutMax: 20}, 20 * time.Second},
		"built-in default capped":  {0, client.Limits{CommandTimeoutMax: 20}, 20 * time.Second},
		"asked below the template": {5, client.Limits{CommandTimeoutDefault: 50, CommandTimeoutMax: 100}, 5 * time.Second},
	}
	for name, tc := range tests {
		if got := Timeout(tc.asked, tc.limits); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
