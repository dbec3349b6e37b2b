package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway"
	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// An idle session is a record and nothing else: no goroutine, no connection, and at
// most 6 KiB.
func TestIdleSessionsAreSmall(t *testing.T) { // not parallel: it measures this process
	const sessions = 5000
	store := session.NewStore()
	fa := &fakeAgent{audience: "sandboxes/5f1e7f3a-0000-4000-8000-000000000000", ip: "127.1.2.3"}
	goroutines, before := runtime.NumGoroutine(), heap()
	for i := range sessions {
		s := readyOn(newSandbox(fmt.Sprintf("session-%d", i), "system:serviceaccount:sandboxes:ai-platform"), fa)
		object, err := store.Transformer()(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Add(object); err != nil {
			t.Fatal(err)
		}
	}
	each := (heap() - before) / sessions
	t.Logf("%d bytes for each idle session", each)
	if each > 6<<10 || each <= 0 {
		t.Errorf("an idle session takes %d bytes, want at most 6 KiB", each)
	}
	if now := runtime.NumGoroutine(); now > goroutines {
		t.Errorf("%d goroutines, before them %d", now, goroutines)
	}
	runtime.KeepAlive(store)
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// 500 calls in 500 sessions, all under way at once: each gets its own answer, and
// the next 500 find the connections that the first ones made.
func TestManyCallsAtOnce(t *testing.T) {
	t.Parallel()
	const calls = 500
	api := newAPI(t)
	var running sync.WaitGroup
	var connections sync.Map // by the gateway's end
	for i := range calls {
		name := fmt.Sprintf("s-%d", i)
		fa := newAgent(t, "pod-"+name)
		fa.session = &client.Session{}
		fa.exec = func(w http.ResponseWriter, r *http.Request, req client.ExecRequest) {
			connections.Store(name+" "+r.RemoteAddr, nil)
			running.Done()
			running.Wait() // for all the others
			agentJSON(w, client.ExecResult{Stdout: name + " " + req.Command})
		}
		api.put(t, readyOn(newSandbox(name, "alice"), fa))
	}
	s := newStack(t, api, nil)
	for round := range 2 {
		running.Add(calls)
		var callers sync.WaitGroup
		for i := range calls {
			callers.Go(func() {
				name, command := fmt.Sprintf("s-%d", i), fmt.Sprintf("round %d", round)
				_, answer := s.do(http.MethodPost, "/mcp", "alice", strings.NewReader(message("2025-11-25", "tools/call",
					fmt.Sprintf(`"name":"bash","arguments":{"command":%q}`, command))), toolHeaders("2025-11-25", name))
				if want, _ := json.Marshal(name + " " + command); !strings.Contains(answer, `"stdout":`+string(want)) {
					t.Errorf("%s got %s", name, answer)
				}
			})
		}
		callers.Wait()
	}
	n := 0
	connections.Range(func(any, any) bool { n++; return true })
	if n > calls {
		t.Errorf("%d connections to %d agents for two calls each, one after the other", n, calls)
	}
}

// One call more than there may be fails at once and runs nothing, in the words of
// its kind; one less doesn't. When one ends, the next finds its place.
func TestCallsAreBounded(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		api := newAPI(t)
		fa := newAgent(t, "pod-1")
		fa.session = &client.Session{}
		fa.artifacts[artifactID] = fakeArtifact{"f.txt", "text/plain", []byte("hello")}
		arrived, release := make(chan struct{}), make(chan struct{})
		fa.exec = func(w http.ResponseWriter, _ *http.Request, req client.ExecRequest) {
			arrived <- struct{}{}
			<-release
			agentJSON(w, client.ExecResult{Stdout: req.Command})
		}
		api.put(t, readyOn(newSandbox("s", "alice"), fa))
		s := newStack(t, api, func(o *gateway.Options) { o.MaxCalls = 4 }) // of which alice may have 3
		c := s.connect(era, "alice", "s")
		answered := make(chan string)
		for range 3 {
			go func() { answered <- text(t, bash(t, c, "x")) }()
			<-arrived
		}
		const busy = "the gateway serves as many calls as it can: nothing was run; try again"
		if got := text(t, bash(t, c, "y")); got != "sandbox exec failed: "+busy {
			t.Errorf("one more command: %q", got)
		}
		if got := text(t, call(t, c, "list_files", object{})); got != busy {
			t.Errorf("one more tool call: %q", got)
		}
		if _, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: artifactOf + "s." + artifactID}); err == nil || !strings.Contains(err.Error(), busy) {
			t.Errorf("one more read: %v", err)
		}
		asked := fa.requests.Load()
		resp, answer := s.do(http.MethodPost, "/sessions/s/files?name=f", "alice", strings.NewReader("x"), nil)
		if got := httpOutcome(t, resp, answer); got != "503 busy" || resp.Header.Get("Retry-After") == "" || fa.requests.Load() != asked {
			t.Errorf("one more upload: %s, the agent was asked %d times", got, fa.requests.Load()-asked)
		}
		task := "sandboxes.s.t-" + strings.Repeat("0", 32) + ".00000000.1"
		for method, want := range map[string]bool{"tasks/get": true, "tasks/update": true, "tasks/cancel": false} {
			if m := s.task("alice", method, task); (m.Error != nil) != want || want && withoutRequest(m.Error.Message) != busy {
				t.Errorf("%s: %+v, want it busy %v: what ends calls is to be there", method, m.Error, want)
			}
		}
		release <- struct{}{}
		<-answered
		go func() { answered <- text(t, bash(t, c, "x")) }()
		<-arrived
		close(release)
		for range 3 {
			if got := <-answered; !strings.Contains(got, `"stdout":"x"`) {
				t.Errorf("a call within the bound got %s", got)
			}
		}
	})
}
