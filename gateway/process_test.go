package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	berthv1alpha1 "github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

type object = map[string]any

// structured is the structured result of a call that did not fail.
func structured(t *testing.T, r *mcp.CallToolResult) object {
	t.Helper()
	if r.IsError {
		t.Fatalf("error %q, want a result", text(t, r))
	}
	return r.StructuredContent.(object)
}

// wantFailure checks that a call failed with text only, which begins with want.
func wantFailure(t *testing.T, what string, r *mcp.CallToolResult, want string) {
	t.Helper()
	if got := text(t, r); !r.IsError || r.StructuredContent != nil || !strings.HasPrefix(got, want) {
		t.Errorf("%s: isError %v, structured %v, text %q; want text only, which begins with %q", what, r.IsError, r.StructuredContent, got, want)
	}
}

// inBackground starts a process and returns its id.
func inBackground(t *testing.T, c *mcp.ClientSession, command string) string {
	t.Helper()
	return structured(t, call(t, c, "bash", object{"command": command, "background": true}))["process_id"].(string)
}

var processIDs = regexp.MustCompile(`^p-[0-9a-f]{16}$`)

// R27: start, list, read, write, resize, signal, through real clients.
func TestBackgroundProcess(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		l := newLive(t)
		c := l.client(era)
		out := structured(t, call(t, c, "bash", object{"command": "serve", "background": true, "terminal": true, "timeout": 5, "max_output_bytes": 7}))
		id, _ := out["process_id"].(string)
		if out["stdout"] != "" || out["stderr"] != "" || out["exit_code"] != 0. || !processIDs.MatchString(id) {
			t.Errorf("result %+v, want nothing but a process id", out)
		}
		started := l.agent.started()
		want := client.ProcessRequest{Command: "serve", ID: id, Terminal: &client.Terminal{}}
		if diff := cmp.Diff(want, started[0].request); diff != "" {
			t.Errorf("request to the agent (-want +got):\n%s", diff)
		}
		if got := structured(t, call(t, c, "process_input", object{"process_id": id, "input": "hi\n", "eof": true, "rows": 4096, "cols": 1})); got["written"] != 3. {
			t.Errorf("input gave %+v, want 3 bytes written", got)
		}
		wantInput := []client.ProcessInput{{Data: "hi\n", EOF: true, Terminal: &client.Terminal{Rows: 4096, Cols: 1}}}
		if diff := cmp.Diff(wantInput, started[0].inputs); diff != "" {
			t.Errorf("input of the process (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(
			object{"output": "hi\n", "offset": 8., "next_offset": 11., "running": true},
			structured(t, call(t, c, "process_output", object{"process_id": id, "offset": -3})),
		); diff != "" {
			t.Errorf("output (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(
			object{"process_id": id, "signal": "TERM"},
			structured(t, call(t, c, "process_signal", object{"process_id": id, "signal": "TERM"})),
		); diff != "" || len(started[0].signals) != 1 {
			t.Errorf("signals %v, result (-want +got):\n%s", started[0].signals, diff)
		}
		if diff := cmp.Diff(object{"processes": []any{object{
			"process_id": id, "kind": "process", "command": "serve", "terminal": true, "running": false, "exit_code": 143.,
			"started": "2026-01-02T03:04:05Z", "output_start": 0., "output_end": 11.,
		}}}, structured(t, call(t, c, "process_list", object{}))); diff != "" {
			t.Errorf("list (-want +got):\n%s", diff)
		}
	})
}

// What the schemas refuse reaches no agent, and limits are clamped.
func TestProcessArguments(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	c := l.client(eras[1])
	id := inBackground(t, c, "x")
	long := strings.Repeat("a", 129)
	refused := []struct {
		tool      string
		arguments object
	}{
		{"bash", object{"command": "x", "terminal": true}},
		{"bash", object{"command": "", "background": true}},
		{"bash", object{"command": "x", "background": "yes"}},
		{"bash", object{"command": "x", "background": true, "process_id": id}},
		{"process_output", object{}},
		{"process_output", object{"process_id": ""}},
		{"process_output", object{"process_id": long}},
		{"process_output", object{"process_id": "a/b"}},
		{"process_output", object{"process_id": "é"}},
		{"process_output", object{"process_id": "a\n"}},
		{"process_output", object{"process_id": id, "offset": 1.5}},
		{"process_output", object{"process_id": id, "offset": "0"}},
		{"process_output", object{"process_id": id, "session": "other"}},
		{"process_input", object{"process_id": id}},
		{"process_input", object{"process_id": id, "input": ""}},
		{"process_input", object{"process_id": id, "eof": false}},
		{"process_input", object{"process_id": id, "rows": 24}},
		{"process_input", object{"process_id": id, "rows": 0, "cols": 80}},
		{"process_input", object{"process_id": id, "rows": 4097, "cols": 80}},
		{"process_input", object{"process_id": id, "input": 7}},
		{"process_signal", object{"process_id": id}},
		{"process_signal", object{"process_id": id, "signal": ""}},
		{"process_signal", object{"process_id": id, "signal": 15}},
		{"process_signal", object{"process_id": id, "signal": "TERM; rm"}},
		{"process_signal", object{"process_id": id, "signal": strings.Repeat("T", 17)}},
		{"process_list", object{"all": true}},
	}
	before := l.agent.requests.Load()
	for _, x := range refused {
		wantFailure(t, fmt.Sprintf("%s %v", x.tool, x.arguments), call(t, c, x.tool, x.arguments), "invalid arguments: ")
	}
	if n := l.agent.requests.Load() - before; n != 0 {
		t.Errorf("%d requests reached the agent", n)
	}
	for query, arguments := range map[string]object{
		"":                         {},
		"wait=1.000":               {"wait": 1},
		"wait=60.000":              {"wait": 60},
		"offset=1&wait=60.000":     {"wait": 61, "offset": 1},
		"offset=2":                 {"wait": -1, "offset": 2},
		"limit=1":                  {"limit": 1},
		"limit=524288":             {"limit": 524288},
		"limit=524288&offset=3":    {"limit": 524289, "offset": 3},
		"offset=4":                 {"limit": 0, "offset": 4},
		"offset=5":                 {"limit": -9, "offset": 5},
		"offset=-6":                {"offset": -6},
		"offset=1099511627776":     {"offset": 1 << 40},
		"offset=-9007199254740992": {"offset": -1e300},
	} {
		arguments["process_id"] = id
		call(t, c, "process_output", arguments)
		if queries := l.agent.started()[0].queries; queries[len(queries)-1] != query {
			t.Errorf("%v asked for %q, want %q", arguments, queries[len(queries)-1], query)
		}
	}
}

// A wrong argument comes back no longer than it helps.
func TestLongWrongArgumentIsNotRepeated(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		r := call(t, newLive(t).client(era), "process_output", object{"process_id": strings.Repeat("ä", 1<<20)})
		if got := text(t, r); !r.IsError || len(got) > 1100 || !strings.HasPrefix(got, "invalid arguments: ") || !strings.HasSuffix(got, "ää [...]") {
			t.Errorf("answered with %d bytes: %.80q", len(got), got)
		}
	})
}

// Asking about processes makes no Sandbox, and what isn't there is told in text.
func TestProcessesThatAreNotThere(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		l := newLive(t)
		c := l.client(era)
		nobody := l.connect(era, "alice", "nobody")
		before, _, _, _ := l.api.counts()
		for tool, arguments := range map[string]object{
			"process_output": {"process_id": "p-1"},
			"process_input":  {"process_id": "p-1", "input": "x"},
			"process_signal": {"process_id": "p-1", "signal": "KILL"},
			"process_list":   {},
		} {
			prefix := strings.ReplaceAll(tool, "_", " ") + " failed: "
			wantFailure(t, tool+" without a sandbox", call(t, nobody, tool, arguments), prefix+"the session has no sandbox, so nothing runs in it")
			if tool != "process_list" {
				wantFailure(t, tool+" of none", call(t, c, tool, arguments), prefix+"no such process")
				arguments["process_id"] = ".." // no agent has one, or is asked for it
				wantFailure(t, tool+" of dots", call(t, c, tool, arguments), prefix+"there is no such process")
			}
		}
		if created, _, _, _ := l.api.counts(); created != before {
			t.Errorf("%d Sandboxes were created", created-before)
		}
	})
}

// A process that is gone with its container is not found, and the caller learns
// why: only the first time, as with every call.
func TestProcessLostWithItsContainerSaysSo(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	sandbox := readyOn(newSandbox("s", "alice"), newAgent(t, "pod-1"))
	sandbox.Status.LastTermination = &berthv1alpha1.Termination{Reason: "OOMKilled", Time: metav1.Now()}
	api.put(t, sandbox)
	c := newStack(t, api, nil).connect(eras[1], "alice", "s")
	const lost = "process output failed: no such process"
	for _, want := range []string{
		lost + "; the sandbox's container was restarted (OOMKilled): shell state, processes and exports are gone, files in the workspace are kept",
		lost,
	} {
		if got := text(t, call(t, c, "process_output", object{"process_id": "p-1"})); got != want {
			t.Errorf("text %q, want %q", got, want)
		}
	}
}

// The caller's role and the session's owner decide, as for bash.
func TestWhoMayUseProcesses(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	api.allowed = role
	for _, name := range []string{"forbidden", "bobs"} {
		api.put(t, readyOn(newSandbox(name, map[string]string{"forbidden": "alice", "bobs": "bob"}[name]), newAgent(t, "pod-"+name)))
	}
	s := newStack(t, api, nil)
	for session, want := range map[string]string{"forbidden": "not allowed", "bobs": "session not available"} {
		c := s.connect(eras[1], "alice", session)
		for tool, arguments := range map[string]object{
			"bash":           {"command": "x", "background": true},
			"process_output": {"process_id": "p"},
			"process_input":  {"process_id": "p", "eof": true},
			"process_signal": {"process_id": "p", "signal": "TERM"},
			"process_list":   {},
		} {
			if got := outcome(t, call(t, c, tool, arguments)); !strings.Contains(got, want) {
				t.Errorf("%s in %s: %q, want %q", tool, session, got, want)
			}
		}
	}
}

// R20: process ids are the agent's: another replica finds what a first started
// that is no more.
func TestAnotherReplicaFindsProcesses(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	id := inBackground(t, l.client(eras[1]), "serve")
	l.stop()
	if err := <-l.done; err != nil {
		t.Fatal(err)
	}
	other := newStack(t, l.api, nil).connect(eras[0], "alice", "s")
	if got := structured(t, call(t, other, "process_output", object{"process_id": id})); got["output"] != "started\n" {
		t.Errorf("output %+v, want that of the first replica's process", got)
	}
}

// R15: a start whose answer was lost is asked once more, and happens once.
func TestLostStartHappensOnce(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	l.agent.session = &client.Session{}
	var asked atomic.Int32
	l.agent.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || asked.Add(1) > 1 {
			return false
		}
		l.agent.process(discardingWriter{}, r) // it starts, and nobody is told
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			conn.Close()
		}
		return true
	}
	id := inBackground(t, l.client(eras[1]), "serve")
	started := l.agent.started()
	if len(started) != 1 || started[0].request.ID != id || asked.Load() != 2 {
		t.Errorf("asked %d times, %d processes, id %s; want one process of that id, asked for twice", asked.Load(), len(started), id)
	}
}

type discardingWriter struct{}

func (discardingWriter) Header() http.Header         { return http.Header{} }
func (discardingWriter) Write(p []byte) (int, error) { return len(p), nil }
func (discardingWriter) WriteHeader(int)             {}

// A caller that goes ends the wait for output.
func TestCancelReachesTheLongPoll(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		l := newLive(t)
		c := l.client(era)
		id := inBackground(t, c, "x")
		began, ended := make(chan struct{}), make(chan struct{})
		l.agent.before = func(_ http.ResponseWriter, r *http.Request) bool {
			close(began)
			hang(r)
			close(ended)
			return true
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-began
			cancel()
		}()
		if _, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "process_output", Arguments: object{"process_id": id, "wait": 60}}); err == nil {
			t.Error("the cancelled call succeeded")
		}
		<-ended
	})
}

// R18: what no honest agent says is not passed on.
func TestLyingAnswersAboutProcesses(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", client.DefaultOutputChunk+4)
	tests := map[string]struct {
		tool   string
		answer string
	}{
		"another process was started": {"bash", `{"id":"other","kind":"process","started":"2026-01-01T00:00:00Z"}`},
		"no process was started":      {"bash", `{}`},
		"negative offset":             {"process_output", `{"output":"","offset":-1,"next_offset":-1}`},
		"offset that goes back":       {"process_output", `{"output":"abc","offset":5,"next_offset":2}`},
		"offset that stands":          {"process_output", `{"output":"abc","offset":0,"next_offset":0}`},
		"more than asked for":         {"process_output", `{"output":"` + long + `","offset":0,"next_offset":` + fmt.Sprint(len(long)) + `}`},
		"endless output":              {"process_output", `{"output":"` + strings.Repeat(long, 100)},
		"exit code of what runs":      {"process_output", `{"output":"","running":true,"exit_code":0}`},
		"impossible exit code":        {"process_output", `{"output":"","exit_code":256}`},
		"negative count":              {"process_input", `{"written":-1}`},
		"more than was given":         {"process_input", `{"written":4}`},
		"malformed id":                {"process_list", `{"processes":[{"id":"../x","kind":"process","started":"2026-01-01T00:00:00Z"}]}`},
		"unknown kind":                {"process_list", `{"processes":[{"id":"x","kind":"y","started":"2026-01-01T00:00:00Z"}]}`},
		"too many":                    {"process_list", `{"processes":[` + strings.Repeat(`{"id":"x","kind":"job","started":"2026-01-01T00:00:00Z"},`, 64) + `{"id":"x","kind":"job","started":"2026-01-01T00:00:00Z"}]}`},
		"not JSON":                    {"process_list", `<html>`},
	}
	arguments := map[string]object{
		"bash":           {"command": "x", "background": true},
		"process_output": {"process_id": "p"},
		"process_input":  {"process_id": "p", "input": "abc"},
		"process_list":   {},
	}
	prefix := map[string]string{
		"bash": "sandbox exec failed: ", "process_output": "process output failed: ", "process_input": "process input failed: ", "process_list": "process list failed: ",
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLive(t)
			l.agent.before = func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprint(w, tc.answer)
				return true
			}
			result := call(t, l.client(eras[1]), tc.tool, arguments[tc.tool])
			wantFailure(t, tc.tool, result, prefix[tc.tool]+"the sandbox's agent gave an answer that can't be used")
		})
	}
}

// R16: the most that one read of output may hold fits the wire, whatever it is.
func TestLargestProcessOutputFits(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	c := l.client(eras[1])
	id := inBackground(t, c, "x")
	for _, unit := range []string{"\x01", "<"} { // 13 and 12 bytes of a result for each
		output := strings.Repeat(unit, client.MaxOutputChunk/len(unit))
		l.agent.started()[0].output = output
		result := call(t, c, "process_output", object{"process_id": id, "limit": client.MaxOutputChunk})
		if got := structured(t, result)["output"]; got != output {
			t.Errorf("%q: %d bytes arrived of %d", unit, len(got.(string)), len(output))
		}
	}
}
