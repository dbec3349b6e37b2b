package gateway_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	berthv1alpha1 "github.com/berth-dev/berth/api/v1alpha1"
	agent "github.com/berth-dev/berth/sandbox-agent/client"
	"github.com/berth-dev/berth/test/localagent"
)

// replicas are gateways in front of one session of alice's, s, on a real agent.
type replicas struct {
	t         *testing.T
	agent     *localagent.Agent
	api       *fakeAPI
	stacks    []*stack
	workspace string
	sandbox   *berthv1alpha1.Sandbox
}

// newReplicas starts so many; the session is ready if ready is.
func newReplicas(t *testing.T, n int, ready bool) *replicas {
	t.Helper()
	r := &replicas{t: t, api: newAPI(t), workspace: t.TempDir()}
	a, err := localagent.Start(t.Context(), localagent.Options{Workspace: r.workspace, Environ: []string{"PATH=/usr/bin:/bin"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Stop)
	r.agent = a
	setSigningKey(t, r.api, a.Key)
	r.sandbox = readyOn(newSandbox("s", "alice"), &fakeAgent{audience: a.Pod.Namespace + "/" + a.Pod.UID, ip: a.Pod.IP.String()})
	r.sandbox.Status.KeyID = localagent.KeyID
	first := r.sandbox.DeepCopy()
	if !ready {
		first = withReady(first, metav1.ConditionFalse, berthv1alpha1.ReasonPodPending, "starting")
	}
	r.api.put(t, first)
	for range n {
		r.stacks = append(r.stacks, newStackFor(t, r.api, agent.Options{Port: a.Port, AllowLoopback: true}, nil))
	}
	return r
}

// begin runs a command through a replica, as the request with the id 1, which tells
// through a FIFO of that name that it runs, and waits for ever.
func (r *replicas) begin(replica int, name string) (answer chan string) {
	r.t.Helper()
	if err := syscall.Mkfifo(filepath.Join(r.workspace, name), 0o666); err != nil {
		r.t.Fatal(err)
	}
	return r.run(replica, "echo >"+name+"; sleep 1000")
}

func (r *replicas) run(replica int, command string) (answer chan string) {
	answer = make(chan string, 1)
	go func() {
		_, body := r.stacks[replica].do(http.MethodPost, "/mcp", "alice", strings.NewReader(bashBody(eras[0], command)), toolHeaders(eras[0], "s"))
		answer <- body
	}()
	return answer
}

// began waits until the command of that name runs.
func (r *replicas) began(name string) {
	r.t.Helper()
	if _, err := os.ReadFile(filepath.Join(r.workspace, name)); err != nil {
		r.t.Fatal(err)
	}
}

// notify tells a replica that a call was cancelled.
func (r *replicas) notify(replica int, token, session, id string) {
	r.t.Helper()
	cancelled(r.stacks[replica], token, session, id)
}

func cancelled(s *stack, token, session, id string) {
	s.t.Helper()
	resp, body := s.do(http.MethodPost, "/mcp", token, strings.NewReader(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`), toolHeaders(eras[0], session))
	if resp.StatusCode != http.StatusAccepted {
		s.t.Errorf("notification: %d %s, want 202", resp.StatusCode, body)
	}
}

// A load balancer sends a notification to any replica: the command in the pod is
// dead soon, and the shell as it was.
func TestCancelledNotificationOnAnotherReplica(t *testing.T) {
	t.Parallel()
	r := newReplicas(t, 2, true)
	first, second := r.stacks[0].connect(eras[0], "alice", "s"), r.stacks[1].connect(eras[1], "alice", "s")
	bash(t, first, "kept=yes")
	answer := r.begin(0, "held")
	r.began("held")
	r.notify(1, "bob", "s", "1")
	r.notify(1, "alice", "other", "1")
	r.notify(1, "alice", "s", `"1"`)
	r.notify(1, "alice", "s", "2")
	select {
	case got := <-answer:
		t.Fatalf("another caller, session or id ended the command: %s", got)
	default:
	}
	began := time.Now()
	r.notify(1, "alice", "s", "1")
	if got := <-answer; !strings.Contains(got, `"exit_code":137`) || !strings.Contains(got, "The command was cancelled.") {
		t.Errorf("answer %s, want exit code 137 and why", got)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the command's end took %v, want less than 5 s", took)
	}
	// A notification that comes twice ends nothing that follows.
	r.notify(1, "alice", "s", "1")
	if out := structured(t, bash(t, second, "echo $kept; pgrep -xc sleep || true")); out["stdout"] != "yes\n0\n" || out["notice"] != nil {
		t.Errorf("next command: %v; want the shell's state, and no process left", out)
	}
	if creates, _, _, _ := r.api.counts(); creates != 1 { // the test's own
		t.Errorf("%d Sandboxes were made, want no more than there were", creates-1)
	}
}

// Two clients of one caller count alike: neither a third replica can tell which is
// meant, nor one that carries one of the calls.
func TestNotificationThatMeansOneOfTwoEndsNeither(t *testing.T) {
	t.Parallel()
	for name, told := range map[string]int{"a third replica": 2, "the first's": 0, "the second's": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReplicas(t, 3, true)
			for _, fifo := range []string{"go", "held"} {
				if err := syscall.Mkfifo(filepath.Join(r.workspace, fifo), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			running := r.run(0, "echo >held; read <go; echo over")
			r.began("held")
			waiting := r.run(1, "echo over")
			r.awaitQueued() // its agent knows of both once they wait in one line
			r.notify(told, "alice", "s", "1")
			r.stacks[told].log.await("none was ended")
			if err := os.WriteFile(filepath.Join(r.workspace, "go"), []byte("\n"), 0); err != nil {
				t.Fatal(err)
			}
			for _, answer := range []chan string{running, waiting} {
				if got := <-answer; !strings.Contains(got, `"stdout":"over\n"`) {
					t.Errorf("answer %s, want its result", got)
				}
			}
		})
	}
}

// awaitQueued waits until a command waits for another one.
func (r *replicas) awaitQueued() {
	r.t.Helper()
	for {
		is, err := r.agent.Client.Activity(r.t.Context(), r.agent.Pod)
		if err != nil {
			r.t.Fatal(err)
		}
		if is.Queued == 1 {
			return
		}
	}
}

// An agent that doesn't say which calls it knows of, or never answers, keeps nobody
// from cancelling.
func TestNotificationWhileTheAgentIsSilent(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"silent":  func(_ http.ResponseWriter, r *http.Request) { hang(r) },
		"lying":   func(w http.ResponseWriter, _ *http.Request) { agentJSON(w, object{"ids": []string{"x"}}) },
		"refuses": func(w http.ResponseWriter, _ *http.Request) { agentError(w, 500, "internal", "m") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLive(t)
			began, ended := make(chan struct{}), make(chan struct{})
			l.agent.exec = func(_ http.ResponseWriter, r *http.Request, _ agent.ExecRequest) {
				close(began)
				hang(r)
				close(ended)
			}
			l.agent.before = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasPrefix(r.URL.Path, "/v1/calls/") {
					return false
				}
				answer(w, r)
				return true
			}
			told := make(chan string, 1)
			go func() {
				_, body := l.do(http.MethodPost, "/mcp", "alice", strings.NewReader(bashBody(eras[0], "sleep 1000")), toolHeaders(eras[0], "s"))
				told <- body
			}()
			<-began
			cancelled(l.stack, "alice", "s", "1")
			<-ended
			if got := <-told; !strings.Contains(got, "the call was cancelled") {
				t.Errorf("answer %s, want it to say that the call was cancelled", got)
			}
		})
	}
}

// A call that waits for its session is cancelled as soon as that is ready, whichever
// comes first.
func TestNotificationAboutACallThatWaitsForItsSession(t *testing.T) {
	t.Parallel()
	r := newReplicas(t, 2, false)
	answer := r.run(0, "touch begun; sleep 1000")
	notified := make(chan struct{})
	go func() {
		defer close(notified)
		r.notify(1, "alice", "s", "1")
	}()
	r.api.setStatus(t, r.sandbox)
	if got := <-answer; !strings.Contains(got, "cancelled") {
		t.Errorf("answer %s, want it to say that the call was cancelled", got)
	}
	<-notified
}

// What a notification may not do, or can't, ends in nothing: no Sandbox, no call of
// an agent, no failure.
func TestNotificationIsNoHammer(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	api.allowed = func(r authorizationv1.SubjectAccessReviewSpec) bool { return r.ResourceAttributes.Name != "forbidden" }
	var asked atomic.Int32
	fa := newAgent(t, "pod-1")
	fa.before = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/v1/calls/") {
			return false
		}
		asked.Add(1)
		agentError(w, http.StatusNotFound, "not_found", "no call of this key is under way")
		return true
	}
	for name, owner := range map[string]string{"mine": "alice", "forbidden": "alice", "bobs": "bob"} {
		api.put(t, readyOn(newSandbox(name, owner), fa))
	}
	gone := readyOn(newSandbox("suspended", "alice"), fa)
	api.put(t, withReady(gone, metav1.ConditionFalse, berthv1alpha1.ReasonSuspended, "by its operatingMode"))
	s := newStack(t, api, nil)
	for session, want := range map[string]int32{"absent": 0, "forbidden": 0, "bobs": 0, "suspended": 0, "Invalid": 0, "": 0, "mine": 1} {
		asked.Store(0)
		cancelled(s, "alice", session, "1")
		if got := asked.Load(); got != want {
			t.Errorf("session %q: %d calls of its agent, want %d", session, got, want)
		}
	}
	asked.Store(0)
	cancelled(s, "alice", "mine", "{}")
	cancelled(s, "alice", "mine", "null")
	if creates, _, _, _ := api.counts(); creates != 4 { // the test's own
		t.Errorf("%d Sandboxes were made, want no more than there were", creates-4)
	}
	// An API server that can't say who may do what is no reason to do it.
	cancelled(s, "alice", "mine", "3")
	before := asked.Load()
	api.failReviews.Store(true)
	cancelled(s, "alice", "absent-too", "3")
	if asked.Load() != before || !strings.Contains(s.log.String(), "was not followed up") {
		t.Errorf("%d calls of an agent, want %d and a line in the log", asked.Load(), before)
	}
}

// An agent that breaks off is asked once more, and told of in the log.
func TestNotificationWhoseAgentBreaksOff(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	var asked atomic.Int32
	l.agent.before = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/v1/calls/") {
			return false
		}
		asked.Add(1)
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			conn.Close()
		}
		return true
	}
	cancelled(l.stack, "alice", "s", "1")
	if n := asked.Load(); n != 2 || !strings.Contains(l.log.String(), "could not be looked for") {
		t.Errorf("asked %d times, want twice and a line in the log", n)
	}
	if result := bash(t, l.client(eras[1]), "true"); result.IsError {
		t.Error(text(t, result))
	}
}
