package gateway_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	berthv1alpha1 "github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/gateway"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// playController makes each new Sandbox ready on an agent of its own, after a
// time in which its pod is pending.
func playController(t *testing.T, api *fakeAPI) *sync.Map {
	agents := &sync.Map{}
	api.onCreate = func(s *berthv1alpha1.Sandbox) {
		go func() {
			api.setStatus(t, withReady(s, metav1.ConditionFalse, berthv1alpha1.ReasonPodPending, "starting"))
			fa := newAgent(t, "pod-"+string(s.UID))
			agents.Store(s.Name, fa)
			api.setStatus(t, readyOn(s, fa))
		}()
	}
	return agents
}

// R14: concurrent first calls over two gateways make one Sandbox, with the
// caller as its owner.
func TestFortyParallelFirstCallsMakeOneSandbox(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	agents := playController(t, api)
	gateways := []*stack{newStack(t, api, nil), newStack(t, api, nil)}
	var clients []*mcp.ClientSession
	for i := range 40 {
		clients = append(clients, gateways[i%2].connect(eras[i/2%2], "alice", "crowd"))
	}
	var all sync.WaitGroup
	for _, c := range clients {
		all.Go(func() {
			if result := bash(t, c, "true"); result.IsError {
				t.Errorf("call failed: %s", text(t, result))
			}
		})
	}
	all.Wait()
	made := api.sandbox(t, "sandboxes", "crowd")
	if creates, _, _, _ := api.counts(); creates > 2 {
		t.Errorf("%d creates were asked of the API server, want at most one by each gateway", creates)
	}
	if made.Spec.Owner != "alice" || made.Labels[berthv1alpha1.LabelCreatedBy] != berthv1alpha1.CreatedByGateway {
		t.Errorf("owner %q, labels %v; want alice and the gateway's label", made.Spec.Owner, made.Labels)
	}
	if made.Spec.TemplateRef.Name != "default" || *made.Spec.StartDeadline != "1m30s" {
		t.Errorf("template %q, startDeadline %v; want default and 1m30s", made.Spec.TemplateRef.Name, *made.Spec.StartDeadline)
	}
	fa, _ := agents.Load("crowd")
	if ran := fa.(*fakeAgent).ran(); len(ran) != 40 {
		t.Errorf("agent ran %d commands, want 40", len(ran))
	}
}

// R14: what can't mend within a wait fails at once, and says why.
func TestHopelessReasonsReachTheCallerAtOnce(t *testing.T) {
	t.Parallel()
	reasons := []string{
		berthv1alpha1.ReasonTemplateNotFound, berthv1alpha1.ReasonTemplateInvalid, berthv1alpha1.ReasonImagePullBackOff,
		berthv1alpha1.ReasonNoShell, berthv1alpha1.ReasonPodForbidden, berthv1alpha1.ReasonNameConflict,
		berthv1alpha1.ReasonSuspended, berthv1alpha1.ReasonQuotaExceeded, berthv1alpha1.ReasonCrashLoopBackOff,
	}
	for _, reason := range reasons {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			api := newAPI(t)
			api.onCreate = func(s *berthv1alpha1.Sandbox) {
				api.setStatus(t, withReady(s, metav1.ConditionFalse, reason, "the words of the controller"))
			}
			c := newStack(t, api, nil).connect(eras[1], "alice", "s")
			result := bash(t, c, "true")
			want := `sandbox exec failed: session "s" is not ready: ` + reason + ": the words of the controller"
			if got := text(t, result); got != want || !result.IsError || result.StructuredContent != nil {
				t.Errorf("text %q, isError %v, structured %v; want %q as an error of text only", got, result.IsError, result.StructuredContent, want)
			}
			if api.sandbox(t, "sandboxes", "s") == nil {
				t.Error("the Sandbox is gone; its place must be kept")
			}
		})
	}
}

// R14: what may mend is waited for, and the end of the wait says what it was.
func TestReadyTimeoutSaysWhy(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	api.onCreate = func(s *berthv1alpha1.Sandbox) {
		api.setStatus(t, withReady(s, metav1.ConditionFalse, berthv1alpha1.ReasonUnschedulable, "0/2 nodes are available"))
	}
	s := newStack(t, api, func(o *gateway.Options) { o.ReadyTimeout = time.Second })
	result := bash(t, s.connect(eras[1], "alice", "s"), "true")
	want := `sandbox exec failed: session "s" is not ready after 1s: Unschedulable: 0/2 nodes are available`
	if got := text(t, result); got != want {
		t.Errorf("text %q, want %q", got, want)
	}
}

// R14: a status that is older than the spec fails nobody.
func TestStaleStatusIsWaitedOut(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	fa := newAgent(t, "pod")
	sandbox := newSandbox("s", "alice")
	sandbox.Generation = 1
	api.put(t, withReady(sandbox, metav1.ConditionFalse, berthv1alpha1.ReasonSuspended, "by its operatingMode"))
	sandbox = api.sandbox(t, "sandboxes", "s")
	sandbox.Generation = 2 // resumed; the controller has not looked yet
	if err := api.Update(t.Context(), sandbox); err != nil {
		t.Fatal(err)
	}
	c := newStack(t, api, nil).connect(eras[1], "alice", "s")
	done := make(chan *mcp.CallToolResult)
	go func() { done <- bash(t, c, "true") }()
	select {
	case r := <-done:
		t.Fatalf("answered %q before the controller looked", text(t, r))
	case <-time.After(50 * time.Millisecond): // a short look is enough to see an answer that comes at once
	}
	api.setStatus(t, readyOn(sandbox, fa))
	if r := <-done; r.IsError {
		t.Errorf("call failed: %s", text(t, r))
	}
}

// R14: a caller that gives up does not take the session from those who wait.
func TestCancelledCallerLeavesTheSandbox(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		api := newAPI(t)
		created := make(chan *berthv1alpha1.Sandbox, 1)
		api.onCreate = func(s *berthv1alpha1.Sandbox) { created <- s }
		s := newStack(t, api, nil)
		gone, stays := s.connect(era, "alice", "s"), s.connect(era, "alice", "s")
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error)
		go func() {
			_, err := gone.CallTool(ctx, &mcp.CallToolParams{Name: "bash", Arguments: map[string]any{"command": "true"}})
			failed <- err
		}()
		sandbox := <-created
		done := make(chan *mcp.CallToolResult)
		go func() { done <- bash(t, stays, "true") }()
		cancel()
		if err := <-failed; err == nil {
			t.Error("the cancelled call succeeded")
		}
		api.setStatus(t, readyOn(sandbox, newAgent(t, "pod")))
		if r := <-done; r.IsError {
			t.Errorf("the other call failed: %s", text(t, r))
		}
		if creates, _, deletes, _ := api.counts(); creates != 1 || deletes != 0 {
			t.Errorf("%d creates and %d deletes, want 1 and 0", creates, deletes)
		}
	})
}

// R14: --create-sandboxes=false only uses what is there.
func TestNothingIsMadeWithoutTheFlag(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	s := newStack(t, api, func(o *gateway.Options) { o.CreateSandboxes = false })
	result := bash(t, s.connect(eras[1], "alice", "s"), "true")
	if got := text(t, result); !strings.HasPrefix(got, "sandbox exec failed: session not found") {
		t.Errorf("text %q, want it to say that the session was not found", got)
	}
	if creates, _, _, _ := api.counts(); creates != 0 {
		t.Errorf("%d creates, want none", creates)
	}
}

// R17: the session's end and its next beginning.
func TestDeleteSession(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		path, token string
		status      int
		deleted     bool
	}{
		"own":                         {"/sessions/mine", "alice", 204, true},
		"absent":                      {"/sessions/absent", "alice", 204, false},
		"another's":                   {"/sessions/mine", "bob", 204, false},
		"no caller":                   {"/sessions/mine", "", 401, false},
		"unknown token":               {"/sessions/mine", "mallory", 401, false},
		"empty":                       {"/sessions/", "alice", 400, false},
		"no slash":                    {"/sessions", "alice", 400, false},
		"upper case":                  {"/sessions/Mine", "alice", 400, false},
		"a path":                      {"/sessions/mine/files", "alice", 400, false},
		"64 characters":               {"/sessions/" + strings.Repeat("a", 64), "alice", 400, false},
		"dots, encoded":               {"/sessions/%2e%2e", "alice", 400, false},
		"own, in one's own namespace": {"/sessions/mine", "builder", 204, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := newAPI(t)
			api.put(t, readyOn(newSandbox("mine", "alice"), newAgent(t, "pod")))
			s := newStack(t, api, nil)
			resp, body := s.do(http.MethodDelete, tc.path, tc.token, nil, nil)
			if resp.StatusCode != tc.status {
				t.Errorf("status %d %s, want %d", resp.StatusCode, body, tc.status)
			}
			if gone := api.sandbox(t, "sandboxes", "mine") == nil; gone != tc.deleted {
				t.Errorf("deleted: %v, want %v", gone, tc.deleted)
			}
		})
	}
}

// R17: a failure says nothing of the cluster.
func TestDeleteFailureIsGeneric(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	s := newStack(t, api, nil)
	s.connect(eras[1], "alice", "") // alice's token is known from now on
	api.failReviews.Store(true)
	resp, body := s.do(http.MethodDelete, "/sessions/mine", "alice", nil, nil)
	if resp.StatusCode != 500 || strings.Contains(body, "etcd") || !strings.Contains(body, `"code":"internal"`) {
		t.Errorf("status %d %s, want 500 with a generic body", resp.StatusCode, body)
	}
}

// R17: the same ID at once gets another Sandbox and so another pod, and a
// command that ran in the old one is told.
func TestSameIDAfterDeleteIsFresh(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		api := newAPI(t)
		agents := playController(t, api)
		s := newStack(t, api, nil)
		c := s.connect(era, "alice", "again")
		if r := bash(t, c, "first"); r.IsError {
			t.Fatal(text(t, r))
		}
		a, _ := agents.Load("again")
		old := a.(*fakeAgent)
		began, ended := make(chan struct{}), make(chan struct{})
		old.exec = func(_ http.ResponseWriter, r *http.Request, _ client.ExecRequest) {
			close(began)
			hang(r)
			close(ended)
		}
		running := make(chan *mcp.CallToolResult)
		go func() { running <- bash(t, c, "sleep 1000") }()
		<-began
		if resp, body := s.do(http.MethodDelete, "/sessions/again", "alice", nil, nil); resp.StatusCode != 204 {
			t.Fatalf("DELETE: %d %s", resp.StatusCode, body)
		}
		if got := text(t, <-running); got != "sandbox exec failed: the session was deleted while the call ran" {
			t.Errorf("the running call was told %q", got)
		}
		<-ended
		if r := bash(t, c, "second"); r.IsError {
			t.Fatal(text(t, r))
		}
		b, _ := agents.Load("again")
		if fresh := b.(*fakeAgent); fresh == old || len(fresh.ran()) != 1 {
			t.Errorf("the call after DELETE did not reach a fresh pod")
		}
	})
}
