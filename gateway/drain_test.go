package gateway_test

import (
	"bufio"
	"context"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/gateway"
)

// R19: an upload that is under way comes to its end while the gateway drains.
func TestDrainWaitsForAnUpload(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	begun := make(chan struct{})
	l.agent.upload = func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadFull(r.Body, make([]byte, 4)); err != nil {
			t.Error(err)
		}
		close(begun)
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			t.Errorf("the rest: %v", err)
		}
		took(w, r.URL.Query().Get("name"), n+4)
	}
	body, sender := io.Pipe()
	status := make(chan string, 1)
	go func() {
		resp, answer := l.do(http.MethodPost, "/sessions/s/files?name=f", "alice", body, nil)
		status <- resp.Status + " " + answer
	}()
	if _, err := sender.Write([]byte("half")); err != nil {
		t.Fatal(err)
	}
	<-begun
	l.stop()
	<-l.closed
	if _, err := sender.Write([]byte("rest")); err != nil {
		t.Error(err)
	}
	sender.Close()
	if got := <-status; !strings.HasPrefix(got, "201 ") || !strings.Contains(got, `"size":8`) {
		t.Errorf("answer %s, want 201 and 8 bytes", got)
	}
	if err := <-l.done; err != nil {
		t.Errorf("Serve returned %v, want nil", err)
	}
}

// R19: what outlasts the drain is ended, an upload too, and leaves nothing.
func TestDrainEndsAnUploadThatOutlastsIt(t *testing.T) {
	t.Parallel()
	api, fa := newAPI(t), newAgent(t, "pod")
	begun, ended := make(chan struct{}), make(chan error, 1)
	fa.upload = func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		_, err := io.Copy(io.Discard, r.Body)
		ended <- err
	}
	api.put(t, readyOn(newSandbox("s", "alice"), fa))
	s := newStack(t, api, func(o *gateway.Options) { o.ShutdownTimeout = 50 * time.Millisecond })
	body, sender := io.Pipe()
	defer sender.Close()
	status := make(chan string, 1)
	go func() {
		resp, answer := s.do(http.MethodPost, "/sessions/s/files?name=f", "alice", body, nil)
		status <- resp.Status + " " + answer
	}()
	if _, err := sender.Write([]byte("half")); err != nil {
		t.Fatal(err)
	}
	<-begun
	s.stop()
	if err := <-ended; err == nil {
		t.Error("the agent took half a file for a whole one")
	}
	sender.Close() // net/http waits for a Read under way
	if got := <-status; strings.HasPrefix(got, "2") {
		t.Errorf("answer %s, want a refusal", got)
	}
	if err := <-s.done; err != nil {
		t.Errorf("Serve returned %v, want nil", err)
	}
}

// R19: output that is told as it comes is told to its end.
func TestDrainWaitsForProgress(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		l, workspace := newReal(t)
		stream := events{t: t, lines: bufio.NewReader(l.begin(t.Context(), era, progressBody(era, "1", "echo one; until [ -e go ]; do sleep 0.01; done; echo two")).Body)}
		if m, _ := stream.next(); m.Params.Message != "one\n" {
			t.Fatalf("first event %+v, want one", m)
		}
		l.stop()
		<-l.closed
		if err := os.WriteFile(filepath.Join(workspace, "go"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		var last event
		for m, ok := stream.next(); ok; m, ok = stream.next() {
			last = m
		}
		if last.Result == nil || last.Result.StructuredContent["stdout"] != "one\ntwo\n" {
			t.Errorf("last event %+v, want the result", last)
		}
		if err := <-l.done; err != nil {
			t.Errorf("Serve returned %v, want nil", err)
		}
	})
}

// R19: a subscription has no end of its own, so the drain is its end: at once, and
// in order.
func TestDrainEndsSubscriptions(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	const body = `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer alice")
	mcpHeaders(r, eras[1])
	r.Header.Set("Mcp-Method", "subscriptions/listen")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	if line, err := lines.ReadString('\n'); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %q, %v; want a stream", resp.Status, line, err)
	}
	l.stop()
	rest, err := io.ReadAll(lines)
	if err != nil {
		t.Errorf("the stream broke off after %q: %v", rest, err)
	}
	if err := <-l.done; err != nil {
		t.Errorf("Serve returned %v, want nil", err)
	}
}

// The gateway's Deployment gives a drain the time that the flags' defaults let it
// take, and a roll-out never takes a replica before another one is there.
func TestDeploymentFitsTheDrain(t *testing.T) {
	t.Parallel()
	var deployment appsv1.Deployment
	readYAML(t, "../config/gateway/deployment.yaml", &deployment)
	var o gateway.Options
	o.BindFlags(flag.NewFlagSet("", flag.ContinueOnError))
	longest := o.DrainDelay + o.ShutdownTimeout + gateway.CloseWait
	pod := deployment.Spec.Template.Spec
	if grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second; grace <= longest {
		t.Errorf("terminationGracePeriodSeconds is %v, want more than %v", grace, longest)
	}
	rolling := deployment.Spec.Strategy.RollingUpdate
	if rolling.MaxUnavailable.IntValue() != 0 || rolling.MaxSurge.IntValue() < 1 {
		t.Errorf("strategy %+v, want none unavailable and one more", rolling)
	}
	ready, live := pod.Containers[0].ReadinessProbe, pod.Containers[0].LivenessProbe
	if ready.HTTPGet.Path != "/readyz" || live.HTTPGet.Path != "/livez" {
		t.Errorf("probes %s and %s, want /readyz and /livez", ready.HTTPGet.Path, live.HTTPGet.Path)
	}
	if period := time.Duration(ready.PeriodSeconds) * time.Second; period >= o.DrainDelay {
		t.Errorf("readiness is looked at every %v, want more often than the drain's delay of %v", period, o.DrainDelay)
	}
	var budget policyv1.PodDisruptionBudget
	readYAML(t, "../config/gateway/disruption-budget.yaml", &budget)
	if n := budget.Spec.MaxUnavailable.IntValue(); n < 1 || n >= int(*deployment.Spec.Replicas) {
		t.Errorf("%d of %d replicas may be taken at a time, want one that leaves another", n, *deployment.Spec.Replicas)
	}
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err == nil {
		err = yaml.UnmarshalStrict(content, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
