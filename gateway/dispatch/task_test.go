package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	berthv1alpha1 "github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

func (s *scripted) ExecDetachable(_ context.Context, pod client.Pod, r client.ExecRequest) (*client.ExecResult, *client.ExecState, error) {
	s.ids = append(s.ids, r.ID)
	return nil, &client.ExecState{ID: r.ID, Running: true, Sent: time.Unix(1000, 0)}, s.next("detach", pod)
}

func (s *scripted) ExecState(_ context.Context, pod client.Pod, id string, _ time.Duration) (*client.ExecState, error) {
	return &client.ExecState{ID: id}, s.next("state", pod)
}

func (s *scripted) CancelExec(ctx context.Context, pod client.Pod, _ string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return s.next("cancel", pod)
}

func old(*one) error {
	return &client.Error{Status: 400, Code: "bad_request", Message: `the body is not the JSON object that this route takes: json: unknown field "detach_after"`}
}
func unknown(*one) error { return &client.Error{Status: 404, Code: "not_found", Message: "none"} }

// ending answers as answer does, when a container has ended at that time.
func ending(at int64, answer func(*one) error) func(*one) error {
	return func(o *one) error {
		now := *o.rec
		now.Termination = &berthv1alpha1.Termination{Reason: "OOMKilled", Time: metav1.Unix(at, 0)}
		o.set(&now)
		return answer(o)
	}
}

// What outlives its call is begun once, and asked for where it is alone.
func TestTasksAreAskedForWhereTheyAre(t *testing.T) {
	detach := func(d *Dispatcher) error {
		_, _, err := d.ExecDetachable(context.Background(), session.Request{}, Command{Source: "x"}, time.Second)
		return err
	}
	in := func(pod string) Where {
		return func(uid string) (time.Time, bool) { return time.Unix(1000, 0), uid == pod }
	}
	state := func(d *Dispatcher) error {
		_, err := d.ExecState(context.Background(), session.Request{}, in("p1"), "t", 0)
		return err
	}
	cancel := func(d *Dispatcher) error {
		return d.CancelExec(context.Background(), session.Request{}, in("p0"), "t")
	}
	const restarted = "the sandbox's container was restarted (OOMKilled): shell state, processes and exports are gone, files in the workspace are kept"
	type answers = []func(*one) error
	for name, tc := range map[string]struct {
		call    func(*Dispatcher) error
		answers answers
		asked   []string
		err     string
		lost    bool
	}{
		"command":                    {detach, answers{fine}, []string{"detach p1"}, "", false},
		"command, broken":            {detach, answers{breaks, unknown}, []string{"detach p1", "cancel p1"}, "the connection to the sandbox was lost; what was asked may have run", false},
		"command, refused":           {detach, answers{unknown}, []string{"detach p1"}, "none", false},
		"command, not sent, gone":    {detach, answers{unsent, ending(1000, unsent), unsent}, []string{"detach p1", "detach p1", "detach p1"}, "the sandbox could not be reached; nothing was run", false},
		"command, not sent":          {detach, answers{unsent, fine}, []string{"detach p1", "detach p1"}, "", false},
		"command, fresh agent":       {detach, answers{fresh, fine}, []string{"detach p1", "bind p1", "detach p1"}, "", false},
		"command, older agent":       {detach, answers{old, fine}, []string{"detach p1", "exec p1"}, "", false},
		"state":                      {state, answers{fine}, []string{"state p1"}, "", false},
		"state, fresh agent":         {state, answers{fresh}, []string{"state p1"}, "the sandbox's agent began anew: what it ran is gone", true},
		"state, unknown":             {state, answers{unknown}, []string{"state p1"}, "none", false},
		"state, container anew":      {state, answers{ending(1000, unsent), unknown}, []string{"state p1", "state p1"}, restarted, true},
		"state, container anew, old": {state, answers{ending(999, unsent), unknown}, []string{"state p1", "state p1"}, "none", false},
		"state, pod replaced":        {state, answers{moving(quiesced)}, []string{"state p1"}, "the sandbox's agent began anew: what it ran is gone", true},
		"another pod":                {cancel, answers{}, nil, "the sandbox's agent began anew: what it ran is gone", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newOne()
				agent := &scripted{store: store, answers: tc.answers}
				err := tc.call(New(agent, store, store, nil, slog.New(slog.DiscardHandler), func(string) {}))
				got := ""
				if err != nil {
					got = err.Error()
				}
				if got != tc.err || errors.Is(err, ErrTaskLost) != tc.lost {
					t.Errorf("error %q, lost %v; want %q", got, errors.Is(err, ErrTaskLost), tc.err)
				}
				if diff := cmp.Diff(tc.asked, agent.asked); diff != "" {
					t.Errorf("the agent was asked (-want +got):\n%s", diff)
				}
				for _, id := range agent.ids {
					if id != agent.ids[0] || !client.ValidExecID(id) || len(id) != 34 {
						t.Errorf("ids %q, want the same one each time", agent.ids)
					}
				}
			})
		})
	}
}

// TestCommandOfACallThatIsGoneIsEnded: it was cancelled when the agent had just let the
// command go, so that nobody has its id.
func TestCommandOfACallThatIsGoneIsEnded(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]error{"its answer came": nil, "its answer was on the way": context.Canceled} {
		ctx, cancel := context.WithCancel(t.Context())
		store := newOne()
		gone := func(*one) error { cancel(); return answer }
		agent := &scripted{store: store, answers: []func(*one) error{gone, fine}}
		_, task, err := New(agent, store, store, nil, slog.New(slog.DiscardHandler), func(string) {}).
			ExecDetachable(ctx, session.Request{}, Command{Source: "x"}, time.Second)
		if task != nil || err == nil || err.Error() != "the call was cancelled" {
			t.Errorf("%s: task %v, error %v", name, task, err)
		}
		if diff := cmp.Diff([]string{"detach p1", "cancel p1"}, agent.asked); diff != "" {
			t.Errorf("%s: the agent was asked (-want +got):\n%s", name, diff)
		}
	}
}
