package gateway_test

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	berthv1alpha1 "github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// live is a gateway with one ready session of alice's.
type live struct {
	*stack
	agent   *fakeAgent
	sandbox *berthv1alpha1.Sandbox
}

func newLive(t *testing.T) *live {
	t.Helper()
	api := newAPI(t)
	fa := newAgent(t, "pod-1")
	sandbox := readyOn(newSandbox("s", "alice"), fa)
	api.put(t, sandbox)
	return &live{newStack(t, api, nil), fa, sandbox}
}

func (l *live) client(era string) *mcp.ClientSession { return l.connect(era, "alice", "s") }

// Design §5: a fresh agent is told its session, and the call repeated once.
func TestFreshAgentIsBoundOnce(t *testing.T) {
	t.Parallel()
	value, timeout := "1", berthv1alpha1.Duration("2m")
	output, export, total, logs, uploads, background := int64(2048), int64(7), int64(6), int64(4<<20), int64(5), true
	api := newAPI(t)
	fa := newAgent(t, "pod-1")
	sandbox := newSandbox("s", "alice")
	sandbox.Spec.Env = []berthv1alpha1.EnvVar{{Name: "A", Value: &value}}
	sandbox.Status.Limits = &berthv1alpha1.Limits{CommandTimeout: &timeout, MaxCommandTimeout: &timeout, OutputBytes: &output, ArtifactBytes: &export, ArtifactTotalBytes: &total, LogBytes: &logs, UploadBytes: &uploads}
	sandbox.Status.BackgroundIsActivity = &background
	sandbox.Status.FileRoots = []berthv1alpha1.FileRoot{"/data", "/srv/a b"}
	api.put(t, readyOn(sandbox, fa))
	c := newStack(t, api, nil).connect(eras[1], "alice", "s")
	for range 2 {
		if r := bash(t, c, "true"); r.IsError {
			t.Fatal(text(t, r))
		}
	}
	if got, want := fa.requests.Load(), int64(4); got != want {
		t.Errorf("agent saw %d requests, want %d: refused, bound, repeated, next", got, want)
	}
	s := fa.session
	if s.UID != string(sandbox.UID) || len(s.Env) != 1 || s.Env[0] != (client.EnvVar{Name: "A", Value: "1"}) {
		t.Errorf("bound %+v, want the Sandbox's UID and environment", s)
	}
	if want := (client.Limits{CommandTimeoutDefault: 120, CommandTimeoutMax: 120, OutputBytes: 2048, ArtifactBytes: 7, ArtifactTotalBytes: 6, LogBytes: 4 << 20, UploadBytes: 5}); s.Limits != want {
		t.Errorf("limits %+v, want %+v", s.Limits, want)
	}
	if diff := cmp.Diff([]string{"/data", "/srv/a b"}, s.FileRoots); diff != "" {
		t.Errorf("file roots (-want +got):\n%s", diff)
	}
	if !s.BackgroundIsActivity {
		t.Error("the agent was not told that background processes are activity")
	}
	if got := fa.ran()[0].Timeout; got != 120 {
		t.Errorf("timeout %v, want the template's 120", got)
	}
}

// Design §5: the call after a replacement says what was lost, and why.
func TestCallAfterReplacementSaysSo(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		generation int64
		ended      *berthv1alpha1.Termination
		want       string
	}{
		"first pod": {1, nil, ""},
		"second pod": {
			2, &berthv1alpha1.Termination{Reason: "Evicted", Message: "the node ran out of memory", Time: metav1.Now()},
			"the sandbox's pod was replaced (Evicted: the node ran out of memory): shell state, processes, exports and all files outside persistent storage are gone",
		},
		"suspended and resumed": {
			2, nil,
			"the sandbox's pod was replaced (it was deleted, by a suspension for one): shell state, processes, exports and all files outside persistent storage are gone",
		},
		"container restarted": {
			1, &berthv1alpha1.Termination{Reason: "OOMKilled", Time: metav1.Now()},
			"the sandbox's container was restarted (OOMKilled): shell state, processes and exports are gone, files in the workspace are kept",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := newAPI(t)
			sandbox := readyOn(newSandbox("s", "alice"), newAgent(t, "pod-1"))
			sandbox.Status.PodGeneration, sandbox.Status.LastTermination = &tc.generation, tc.ended
			api.put(t, sandbox)
			c := newStack(t, api, nil).connect(eras[1], "alice", "s")
			for i, want := range []string{tc.want, ""} {
				out := bash(t, c, "true").StructuredContent.(map[string]any)
				if got, _ := out["notice"].(string); got != want {
					t.Errorf("call %d: notice %q, want %q", i, got, want)
				}
			}
		})
	}
}

// R9: the private key of an old pod was removed. Nothing mends that but a new pod,
// so the caller is told.
func TestMissingKeyIsTold(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	agent := newAgent(t, "pod-1")
	sandbox := readyOn(newSandbox("s", "alice"), agent)
	sandbox.Status.KeyID = "key-0000"
	api.put(t, sandbox)
	result := bash(t, newStack(t, api, nil).connect(eras[1], "alice", "s"), "true")
	if got := text(t, result); !strings.Contains(got, "signing key") || !strings.Contains(got, "nothing was run") || !strings.Contains(got, "delete the session") {
		t.Errorf("got %q, want what to do", got)
	}
	if n := agent.requests.Load(); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// R15: a command that may have begun is never sent again.
func TestLostConnectionIsNotRepeated(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	l.agent.exec = func(w http.ResponseWriter, _ *http.Request, _ client.ExecRequest) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			conn.Close()
		}
	}
	result := bash(t, l.client(eras[1]), "rm -rf build")
	if got, want := text(t, result), "sandbox exec failed: the connection to the sandbox was lost; what was asked may have run"; got != want || !result.IsError {
		t.Errorf("text %q, want %q", got, want)
	}
	if n := len(l.agent.ran()); n != 1 {
		t.Errorf("the command was begun %d times, want once", n)
	}
}

// R15, R14: what the cluster knows of a lost connection reaches the caller.
func TestLostConnectionSaysWhatHappened(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	l.agent.exec = func(w http.ResponseWriter, _ *http.Request, _ client.ExecRequest) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		l.sandbox.Status.LastTermination = &berthv1alpha1.Termination{Reason: "OOMKilled", Message: "limit 512Mi", Time: metav1.Now()}
		l.api.setStatus(t, withReady(l.sandbox, metav1.ConditionFalse, berthv1alpha1.ReasonOOMKilled, ""))
		conn.Close()
	}
	want := "sandbox exec failed: the connection to the sandbox was lost; what was asked may have run: OOMKilled: limit 512Mi"
	if got := text(t, bash(t, l.client(eras[1]), "x")); got != want {
		t.Errorf("text %q, want %q", got, want)
	}
}

// R15: 401 means that another pod has the address: the address is asked for
// anew and the command, which did not run, is sent to the right one.
func TestInheritedAddressIsResolvedAgain(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	c := l.client(eras[1])
	if r := bash(t, c, "first"); r.IsError {
		t.Fatal(text(t, r))
	}
	l.agent.audience = "sandboxes/stranger" // the pod's IP is another's now
	moved := newAgent(t, "pod-2")
	l.agent.before = func(http.ResponseWriter, *http.Request) bool {
		// The API server knows the new pod when the old address is asked.
		l.api.setStatus(t, readyOn(l.sandbox, moved))
		return false
	}
	if r := bash(t, c, "second"); r.IsError {
		t.Fatal(text(t, r))
	}
	if got := moved.ran(); len(got) != 1 || got[0].Command != "second" {
		t.Errorf("the new pod ran %v, want the second command", got)
	}
}

// R15: a token that is refused for good is an error after one repetition.
func TestRefusedTokenEndsAfterOneRepetition(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	l.agent.audience = "sandboxes/stranger"
	result := bash(t, l.client(eras[1]), "x")
	if got, want := text(t, result), "sandbox exec failed: the sandbox's agent refused the gateway's token; nothing was run"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
	if n := l.agent.requests.Load(); n != 2 {
		t.Errorf("agent saw %d requests, want 2", n)
	}
	if _, reads, _, _ := l.api.counts(); reads != 1 {
		t.Errorf("the address was asked for %d times, want once", reads)
	}
}

// R15: 410 and a draining agent send the call to the next pod, once there is one.
func TestDepartingPodIsWaitedOut(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]struct {
		status int
		code   string
	}{"gone": {410, "gone"}, "quiesced": {410, "quiesced"}, "draining": {503, "draining"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLive(t)
			next := newAgent(t, "pod-2")
			l.agent.before = func(w http.ResponseWriter, _ *http.Request) bool {
				agentError(w, answer.status, answer.code, "this pod goes")
				go l.api.setStatus(t, readyOn(l.sandbox.DeepCopy(), next))
				return true
			}
			if r := bash(t, l.client(eras[1]), "x"); r.IsError {
				t.Fatal(text(t, r))
			}
			if n := len(next.ran()); n != 1 {
				t.Errorf("the next pod ran %d commands, want 1", n)
			}
		})
	}
}

// R15: of a call that could not be sent not a byte has left, so it waits for
// what the cluster makes of it and goes to the pod that comes.
func TestUnreachablePodIsReplaced(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	l.agent.stop() // connection refused
	next := newAgent(t, "pod-2")
	read := make(chan struct{}, 1)
	l.api.onRead = func() {
		select {
		case read <- struct{}{}:
		default:
		}
	}
	go func() {
		<-read // the gateway has looked again and found the same address
		l.api.setStatus(t, readyOn(l.sandbox.DeepCopy(), next))
	}()
	if r := bash(t, l.client(eras[1]), "x"); r.IsError {
		t.Fatal(text(t, r))
	}
	if n := len(next.ran()); n != 1 {
		t.Errorf("the next pod ran %d commands, want 1", n)
	}
}

// Refusals of an agent reach the session's own caller in the agent's words.
func TestRefusalsOfAnAgent(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		status        int
		code, message string
		advice        string
	}{
		"queue full": {429, "queue_full", "64 commands wait already", "; nothing was run: try again"},
		"too large":  {413, "too_large", "a command is at most 1 MiB", ""},
		"no shell":   {503, "no_shell", "the image has no shell", ""},
		"no space":   {507, "no_space", "the disk is full", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLive(t)
			l.agent.exec = func(w http.ResponseWriter, _ *http.Request, _ client.ExecRequest) {
				agentError(w, tc.status, tc.code, tc.message)
			}
			result := bash(t, l.client(eras[1]), "x")
			if got, want := text(t, result), "sandbox exec failed: "+tc.message+tc.advice; got != want || !result.IsError {
				t.Errorf("text %q, want %q", got, want)
			}
			if n := len(l.agent.ran()); n != 1 {
				t.Errorf("sent %d times, want once", n)
			}
		})
	}
}

// R18: a lying agent gets nothing: no redirect is followed, no impossible answer
// believed.
func TestHostileAgentAnswers(t *testing.T) {
	t.Parallel()
	var visited atomic.Bool
	victim := newAgent(t, "victim")
	victim.before = func(http.ResponseWriter, *http.Request) bool { visited.Store(true); return false }
	tests := map[string]http.HandlerFunc{
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, victim.server.URL+"/v1/exec", http.StatusTemporaryRedirect)
		},
		"no JSON": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Write([]byte("<html>"))
		},
		"another type": func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"stdout":""}`)) },
		"impossible exit code": func(w http.ResponseWriter, _ *http.Request) {
			agentJSON(w, client.ExecResult{ExitCode: 70000})
		},
		"a gzip bomb": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			packed := gzip.NewWriter(w)
			_, _ = io.WriteString(packed, `{"stdout":"`+strings.Repeat("x", 64<<20)+`"}`) // until the gateway has seen enough
			_ = packed.Close()
		},
		"10 GB, announced": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "10000000000")
			w.WriteHeader(http.StatusOK)
		},
		"endless": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			block := []byte(`{"stdout":"` + strings.Repeat("x", 1<<16))
			for {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		},
	}
	for name, answer := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLive(t)
			l.agent.exec = func(w http.ResponseWriter, r *http.Request, _ client.ExecRequest) { answer(w, r) }
			result := bash(t, l.client(eras[1]), "x")
			if got, want := text(t, result), "sandbox exec failed: the sandbox's agent gave an answer that can't be used"; got != want {
				t.Errorf("text %q, want %q", got, want)
			}
			if visited.Load() {
				t.Error("the redirect was followed")
			}
		})
	}
}

// Cancellation: a caller that cancels or goes cancels the command in the pod.
func TestCancelReachesTheCommand(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		l := newLive(t)
		began, ended := make(chan struct{}), make(chan struct{})
		l.agent.exec = func(_ http.ResponseWriter, r *http.Request, _ client.ExecRequest) {
			close(began)
			hang(r)
			close(ended)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-began
			cancel()
		}()
		c := l.client(era)
		if _, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "bash", Arguments: map[string]any{"command": "sleep 1000"}}); err == nil {
			t.Error("the cancelled call succeeded")
		}
		<-ended
	})
}
