package gateway_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	berthv1alpha1 "github.com/berth-dev/berth/api/v1alpha1"
	agent "github.com/berth-dev/berth/sandbox-agent/client"
)

// becomes is what happens to a session while a call is under way.
type becomes func(t *testing.T, l *live, next *fakeAgent)

// change edits the session's Sandbox.
func change(t *testing.T, l *live, edit func(*berthv1alpha1.Sandbox)) {
	sandbox := l.api.sandbox(t, "sandboxes", "s")
	edit(sandbox)
	if err := l.api.inner.Update(t.Context(), sandbox); err != nil {
		t.Errorf("change the Sandbox: %v", err)
	}
}

func deleted(t *testing.T, l *live, _ *fakeAgent) {
	if err := l.api.inner.Delete(t.Context(), l.api.sandbox(t, "sandboxes", "s")); err != nil {
		t.Errorf("delete the Sandbox: %v", err)
	}
}

// deleting is deleted of one that somebody's finalizer holds.
func deleting(t *testing.T, l *live, next *fakeAgent) {
	change(t, l, func(s *berthv1alpha1.Sandbox) { s.Finalizers = []string{"example.com/held"} })
	deleted(t, l, next)
}

// deletingAwhile is deleting until that lets go.
func deletingAwhile(t *testing.T, l *live, next *fakeAgent) {
	deleting(t, l, next)
	change(t, l, func(s *berthv1alpha1.Sandbox) { s.Finalizers = nil })
}

func suspended(t *testing.T, l *live, _ *fakeAgent) {
	l.api.setStatus(t, withReady(l.sandbox.DeepCopy(), metav1.ConditionFalse, berthv1alpha1.ReasonSuspended, "by its operatingMode"))
}

func replaced(t *testing.T, l *live, next *fakeAgent) {
	l.api.setStatus(t, readyOn(l.sandbox.DeepCopy(), next))
}

// replacedSlowly has a pod that isn't ready before.
func replacedSlowly(t *testing.T, l *live, next *fakeAgent) {
	l.api.setStatus(t, withReady(l.sandbox.DeepCopy(), metav1.ConditionFalse, berthv1alpha1.ReasonPodPending, "starting"))
	replaced(t, l, next)
}

// A call that its pod no longer takes follows its session wherever that is going: to
// the next pod, to a new Sandbox if a gateway made the one that goes, or to an error
// that says where it went. Nothing runs twice.
func TestCallWhosePodTakesNoMoreFollowsItsSession(t *testing.T) {
	t.Parallel()
	const gone = "sandbox exec failed: session not found"
	tests := map[string]struct {
		made    bool // by a gateway
		becomes becomes
		want    string // the beginning of an error; "" is success
		creates int
	}{
		"replaced":                   {false, replaced, "", 0},
		"replaced, slowly":           {false, replacedSlowly, "", 0},
		"suspended":                  {false, suspended, `sandbox exec failed: session "s" is not ready: Suspended: by its operatingMode`, 0},
		"suspended, a gateway's":     {true, suspended, `sandbox exec failed: session "s" is not ready: Suspended: by its operatingMode`, 0},
		"deleted":                    {false, deleted, gone, 0},
		"deleted, a gateway's":       {true, deleted, "", 1},
		"being deleted":              {false, deleting, `sandbox exec failed: session "s" is not ready: Deleting: the sandbox is being deleted`, 0},
		"being deleted, a gateway's": {true, deletingAwhile, "", 1},
		"being deleted awhile":       {false, deletingAwhile, `sandbox exec failed: session`, 0}, // not found, or being deleted
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newMade(t, tc.made)
			next := newAgent(t, "pod-2")
			before, _, _, _ := l.api.counts()
			l.api.onCreate = func(s *berthv1alpha1.Sandbox) { l.api.setStatus(t, readyOn(s, next)) }
			var looked sync.Once
			l.api.onRead = func() { looked.Do(func() { tc.becomes(t, l, next) }) } // after the agent's word
			l.agent.before = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != "/v1/exec" {
					return false
				}
				agentError(w, http.StatusGone, "quiesced", "this pod goes")
				return true
			}
			result := bash(t, l.client(eras[1]), "x")
			ran := 1
			if tc.want != "" {
				ran = 0
			}
			if got := text(t, result); result.IsError != (tc.want != "") || !strings.HasPrefix(got, tc.want) {
				t.Errorf("text %q, want %q", got, tc.want)
			}
			if n := len(next.ran()); n != ran {
				t.Errorf("the next pod ran %d commands, want %d", n, ran)
			}
			if creates, _, _, _ := l.api.counts(); creates-before != tc.creates {
				t.Errorf("%d Sandboxes were made, want %d", creates-before, tc.creates)
			}
		})
	}
}

// A call under way is told what became of its session, and isn't sent again.
func TestCallUnderWayIsToldWhatBecameOfItsSession(t *testing.T) {
	t.Parallel()
	const lost = "sandbox exec failed: the connection to the sandbox was lost; what was asked may have run"
	tests := map[string]struct {
		becomes becomes
		hangs   bool // the agent does, rather than break off
		want    string
	}{
		"deleted":                       {deleted, true, "sandbox exec failed: the session was deleted while the call ran"},
		"being deleted":                 {deleting, true, "sandbox exec failed: the session was deleted while the call ran"},
		"suspended, and breaks off":     {suspended, false, lost + ": Suspended: by its operatingMode"},
		"replaced, and breaks off":      {replaced, false, lost},
		"replaced, and then breaks off": {replacedSlowly, false, lost},
	}
	for name, tc := range tests {
		for _, made := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				l := newMade(t, made)
				next := newAgent(t, "pod-2")
				before, _, _, _ := l.api.counts()
				l.agent.exec = func(w http.ResponseWriter, r *http.Request, _ agent.ExecRequest) {
					tc.becomes(t, l, next)
					if tc.hangs {
						hang(r)
					} else if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
						conn.Close()
					}
				}
				result := bash(t, l.client(eras[1]), "x")
				if got := text(t, result); !result.IsError || !strings.HasPrefix(got, tc.want) {
					t.Errorf("text %q, want %q", got, tc.want)
				}
				if first, second := len(l.agent.ran()), len(next.ran()); first != 1 || second != 0 {
					t.Errorf("the command began %d times, and %d times in the next pod; want once, and never there", first, second)
				}
				if creates, _, _, _ := l.api.counts(); creates != before {
					t.Errorf("%d Sandboxes were made for a call that had begun", creates-before)
				}
			})
		}
	}
}

// newMade is newLive of a session that a gateway made, or kubectl.
func newMade(t *testing.T, byGateway bool) *live {
	t.Helper()
	api, fa := newAPI(t), newAgent(t, "pod-1")
	sandbox := readyOn(newSandbox("s", "alice"), fa)
	if byGateway {
		sandbox.Labels = client.MatchingLabels{berthv1alpha1.LabelCreatedBy: berthv1alpha1.CreatedByGateway}
	}
	api.put(t, sandbox)
	return &live{newStack(t, api, nil), fa, sandbox}
}
