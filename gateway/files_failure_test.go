package gateway_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	berthv1alpha1 "github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// What the schemas refuse reaches no agent.
func TestFileArguments(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	l.agent.put(strings.Repeat("a", 4096), "x")
	c := l.client(eras[1])
	call(t, c, "read_file", object{"path": strings.Repeat("a", 4096)})
	many := make([]object, 257)
	for i := range many {
		many[i] = object{"old": "a", "new": "b"}
	}
	before := l.agent.requests.Load()
	for _, x := range []struct {
		tool      string
		arguments object
	}{
		{"read_file", object{}},
		{"read_file", object{"path": ""}},
		{"read_file", object{"path": 1}},
		{"read_file", object{"path": []string{"f"}}},
		{"read_file", object{"path": strings.Repeat("a", 4097)}},
		{"read_file", object{"path": "f", "session": "other"}},
		{"read_file", object{"path": "f", "offset": 0}},
		{"read_file", object{"path": "f", "offset": -1}},
		{"read_file", object{"path": "f", "offset": 1.5}},
		{"read_file", object{"path": "f", "limit": 0}},
		{"read_file", object{"path": "f", "byte_offset": -1}},
		{"read_file", object{"path": "f", "byte_limit": 0}},
		{"read_file", object{"path": "f", "byte_limit": 1, "limit": 1}},
		{"read_file", object{"path": "f", "byte_offset": 0, "offset": 1}},
		{"write_file", object{"path": "f"}},
		{"write_file", object{"content": "x"}},
		{"write_file", object{"path": "", "content": "x"}},
		{"write_file", object{"path": "f", "content": 7}},
		{"write_file", object{"path": "f", "content": "x", "encoding": "latin-1"}},
		{"write_file", object{"path": "f", "content": "====", "encoding": "base64"}},
		{"write_file", object{"path": "f", "content": "AAF", "encoding": "base64"}},
		{"write_file", object{"path": "f", "content": "x", "mode": "0755"}},
		{"edit_file", object{"path": "f"}},
		{"edit_file", object{"path": "f", "edits": []object{}}},
		{"edit_file", object{"path": "f", "edits": many}},
		{"edit_file", object{"path": "f", "edits": []object{{"old": "", "new": "x"}}}},
		{"edit_file", object{"path": "f", "edits": []object{{"old": "x"}}}},
		{"edit_file", object{"path": "f", "edits": []object{{"old": "x", "new": "y", "regexp": true}}}},
		{"edit_file", object{"path": "f", "edits": object{"old": "x", "new": "y"}}},
		{"list_files", object{"path": ""}},
		{"list_files", object{"depth": 0}},
		{"list_files", object{"limit": 0}},
		{"list_files", object{"glob": ""}},
		{"list_files", object{"glob": strings.Repeat("*", 1025)}},
		{"list_files", object{"after": ""}},
		{"list_files", object{"namespace": "kube-system"}},
	} {
		wantFailure(t, fmt.Sprintf("%s %.100v", x.tool, x.arguments), call(t, c, x.tool, x.arguments), "invalid arguments: ")
	}
	if n := l.agent.requests.Load() - before; n != 0 {
		t.Errorf("%d requests reached the agent", n)
	}
}

// An agent's words reach the model as they are, and what is not theirs is told
// from them.
func TestFileFailures(t *testing.T) {
	t.Parallel()
	tools := map[string]struct {
		arguments object
		prefix    string
	}{
		"read_file":  {object{"path": "f"}, "file read failed: "},
		"write_file": {object{"path": "f", "content": "x"}, "file write failed: "},
		"edit_file":  {object{"path": "f", "edits": []object{{"old": "a", "new": "b"}}}, "file edit failed: "},
		"list_files": {object{"path": "f"}, "file list failed: "},
	}
	for code, status := range map[string]int{
		"bad_request": 400, "outside_workspace": 403, "forbidden": 403, "not_found": 404, "stalled": 408, "changed": 409,
		"too_large": 413, "out_of_range": 416, "not_regular": 422, "not_directory": 422, "no_match": 422, "many_matches": 422,
		"internal": 500, "no_space": 507,
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			l := newLive(t)
			l.agent.session = &client.Session{}
			l.agent.before = func(w http.ResponseWriter, _ *http.Request) bool {
				agentError(w, status, code, `edit 2: "f" is what it is: try so`)
				return true
			}
			c := l.client(eras[0])
			for tool, x := range tools {
				wantFailure(t, tool, call(t, c, tool, x.arguments), x.prefix+`edit 2: "f" is what it is: try so`)
			}
		})
	}
}

// A session that outlived an upgrade has the agent that it was born with: what that
// can't do is not a file that is missing.
func TestFileToolsOnAnOlderAgent(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	l.agent.session = &client.Session{}
	l.agent.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/v1/files" {
			agentError(w, http.StatusMethodNotAllowed, "method_not_allowed", "this route takes POST")
		} else {
			agentError(w, http.StatusNotFound, "not_found", "there is no such route; see docs/agent.md")
		}
		return true
	}
	const want = "the sandbox's agent is older than this gateway and can't do that; nothing was run: do it with a command, or delete the session to start it afresh"
	c := l.client(eras[1])
	for tool, x := range map[string]struct {
		arguments object
		prefix    string
	}{
		"read_file":  {object{"path": "f"}, "file read failed: "},
		"write_file": {object{"path": "f", "content": "x"}, "file write failed: "},
		"edit_file":  {object{"path": "f", "edits": []object{{"old": "a", "new": "b"}}}, "file edit failed: "},
		"list_files": {object{}, "file list failed: "},
	} {
		wantFailure(t, tool, call(t, c, tool, x.arguments), x.prefix+want)
	}
}

// A session that has quiesced or ended while a file was asked for says so; one
// whose agent is new is bound, and the whole body is sent again.
func TestFileToolsRepeatWhatDidNotRun(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	fa := newAgent(t, "pod-1")
	sandbox := readyOn(newSandbox("s", "alice"), fa)
	sandbox.Status.LastTermination = &berthv1alpha1.Termination{Reason: "OOMKilled", Time: metav1.Now()}
	api.put(t, sandbox)
	c := newStack(t, api, nil).connect(eras[1], "alice", "s")
	content := strings.Repeat("0123456789", 100_000)
	out := structured(t, call(t, c, "write_file", object{"path": "f", "content": content}))
	if fa.files["f"].data != content || out["size"] != 1e6 {
		t.Errorf("a fresh agent got %d bytes, answered %v", len(fa.files["f"].data), out)
	}
	if notice, _ := out["notice"].(string); !strings.Contains(notice, "OOMKilled") {
		t.Errorf("notice %q, want what was lost", notice)
	}
	if out := structured(t, call(t, c, "read_file", object{"path": "f", "byte_offset": 0})); out["notice"] != nil {
		t.Errorf("told again: %v", out["notice"])
	}
}

// R15: what may have written is never sent again; what reads is, once.
func TestLostFileCalls(t *testing.T) {
	t.Parallel()
	for tool, tc := range map[string]struct {
		arguments object
		asked     int32
	}{
		"read_file":  {object{"path": "f"}, 2},
		"list_files": {object{}, 2},
		"write_file": {object{"path": "f", "content": "x"}, 1},
		"edit_file":  {object{"path": "f", "edits": []object{{"old": "a", "new": "b"}}}, 1},
	} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			l := newLive(t)
			l.agent.put("f", "a")
			l.agent.session = &client.Session{}
			var asked atomic.Int32
			l.agent.before = func(w http.ResponseWriter, r *http.Request) bool {
				if asked.Add(1) > 1 {
					return false
				}
				if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
					conn.Close()
				}
				return true
			}
			result := call(t, l.client(eras[1]), tool, tc.arguments)
			if lost := strings.Contains(text(t, result), "what was asked may have run"); lost != (tc.asked == 1) || asked.Load() != tc.asked {
				t.Errorf("asked %d times, want %d; answer %q", asked.Load(), tc.asked, text(t, result))
			}
		})
	}
}

// R18: what no honest agent says is not passed on.
func TestLyingAnswersAboutFiles(t *testing.T) {
	t.Parallel()
	const facts = `{"size":3,"mode":"0644","modified":"2026-01-01T00:00:00Z","mime_type":"text/plain","encoding":"utf-8"`
	const entry = `{"path":"x","type":"file","mode":"0644","modified":"2026-01-01T00:00:00Z"}`
	for name, tc := range map[string]struct{ tool, facts, answer string }{
		"a file without facts":     {"read_file", ``, "abc"},
		"lines without facts":      {"read_file", facts + `}`, "abc"},
		"other lines":              {"read_file", facts + `,"lines":{"first":2,"count":1,"offset":0}}`, "abc"},
		"more lines than asked":    {"read_file", facts + `,"lines":{"first":1,"count":2001,"offset":0}}`, "abc"},
		"lines that go back":       {"read_file", facts + `,"lines":{"first":1,"count":1,"offset":0,"next":1,"next_offset":1}}`, "abc"},
		"a type of many lines":     {"read_file", strings.Replace(facts, "text/plain", `a\nb`, 1) + `,"lines":{"first":1,"count":1,"offset":0}}`, "abc"},
		"a type with a line's end": {"read_file", strings.Replace(facts, "text/plain", `text/plain;\r\n charset=x`, 1) + `,"lines":{"first":1,"count":1,"offset":0}}`, "abc"},
		"endless lines":            {"read_file", facts + `,"lines":{"first":1,"count":1,"offset":0}}`, strings.Repeat("x", 2<<20)},
		"an edit that wasn't":      {"edit_file", ``, `{"path":"f","size":1,"edits":[]}`},
		"an edit of nothing":       {"edit_file", ``, `{"path":"f","size":1,"edits":[{"replaced":0,"line":1}]}`},
		"less than was written":    {"write_file", ``, `{"path":"f","size":0,"mode":"0644"}`},
		"a mode that is none":      {"write_file", ``, `{"path":"f","size":1,"mode":"rwx"}`},
		"an unknown type of entry": {"list_files", ``, `{"path":".","entries":[{"path":"x","type":"door","mode":"0644","modified":"2026-01-01T00:00:00Z"}]}`},
		"an entry without a path":  {"list_files", ``, `{"path":".","entries":[{"path":"","type":"file","mode":"0644","modified":"2026-01-01T00:00:00Z"}]}`},
		"more entries than asked":  {"list_files", ``, `{"path":".","entries":[` + strings.Repeat(entry+",", 500) + entry + `]}`},
		"an endless list":          {"list_files", ``, `{"path":"` + strings.Repeat("x", 2<<20)},
		"no JSON":                  {"list_files", ``, `<html>`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLive(t)
			l.agent.session = &client.Session{}
			l.agent.before = func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Content-Type", "application/json")
				if tc.facts != "" {
					w.Header().Set("Berth-File", tc.facts)
				}
				fmt.Fprint(w, tc.answer)
				return true
			}
			arguments := map[string]object{
				"read_file": {"path": "f"}, "write_file": {"path": "f", "content": "x"}, "list_files": {},
				"edit_file": {"path": "f", "edits": []object{{"old": "a", "new": "b"}}},
			}[tc.tool]
			prefix := "file " + strings.TrimSuffix(tc.tool, "_file") + " failed: "
			if tc.tool == "list_files" {
				prefix = "file list failed: "
			}
			wantFailure(t, tc.tool, call(t, l.client(eras[1]), tc.tool, arguments), prefix+"the sandbox's agent gave an answer that can't be used")
		})
	}
}

// R16: the most that one read or list may hold fits the wire, whatever it is.
func TestLargestFileResultsFit(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	c := l.client(eras[1])
	for _, unit := range []string{"\x01", "<", "\n"} {
		data := strings.Repeat(unit, 512<<10)
		l.agent.put("f", data)
		if got := structured(t, call(t, c, "read_file", object{"path": "f", "byte_limit": 512 << 10}))["content"]; got != data {
			t.Errorf("%q: %d bytes arrived of %d", unit, len(got.(string)), len(data))
		}
	}
	data := strings.Repeat("\xff\x00\xfe", 100_000)
	l.agent.files["f"] = fakeFile{"application/octet-stream", client.EncodingBinary, data}
	if got := structured(t, call(t, c, "read_file", object{"path": "f", "byte_limit": 512 << 10}))["content"]; got != base64.StdEncoding.EncodeToString([]byte(data)) {
		t.Errorf("binary: %d bytes arrived", len(got.(string)))
	}
	delete(l.agent.files, "f")
	for i := range 250 { // of which each byte takes twelve
		l.agent.put(fmt.Sprintf("%03d", i)+strings.Repeat("<", 4000), "")
	}
	out := structured(t, call(t, c, "list_files", object{}))
	if n := len(out["entries"].([]any)); n != 125 || out["truncated"] != true || out["next"] != "125" {
		t.Errorf("%d entries, truncated %v, next %v; want half of them, and where to go on", n, out["truncated"], out["next"])
	}
}

// Lists that must be asked for anew, since they don't fit the wire, don't wait for
// the room that others of them hold meanwhile.
func TestManyLargeListsAtATime(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	for i := range 250 {
		l.agent.put(fmt.Sprintf("%03d", i)+strings.Repeat("<", 4000), "")
	}
	c := l.client(eras[1])
	ctx, cancel := context.WithTimeout(t.Context(), 5*patience) // the race detector makes it long work
	defer cancel()
	var all sync.WaitGroup
	for range 9 { // eight take all the room there is
		all.Go(func() {
			result, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "list_files", Arguments: object{}})
			if err != nil || result.IsError {
				t.Errorf("list: %v, %v", result, err)
			}
		})
	}
	all.Wait()
}

// The caller's role and the session's owner decide, as for bash.
func TestWhoMayUseFiles(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	api.allowed = role
	for _, name := range []string{"forbidden", "bobs"} {
		api.put(t, readyOn(newSandbox(name, map[string]string{"forbidden": "alice", "bobs": "bob"}[name]), newAgent(t, "pod-"+name)))
	}
	s := newStack(t, api, nil)
	for session, want := range map[string]string{"forbidden": "not allowed", "bobs": "session not available", "": "missing X-Session-ID", "a/b": "invalid X-Session-ID"} {
		c := s.connect(eras[1], "alice", session)
		for tool, arguments := range map[string]object{
			"read_file":  {"path": "f"},
			"write_file": {"path": "f", "content": "x"},
			"edit_file":  {"path": "f", "edits": []object{{"old": "a", "new": "b"}}},
			"list_files": {},
		} {
			if got := outcome(t, call(t, c, tool, arguments)); !strings.Contains(got, want) {
				t.Errorf("%s in %q: %q, want %q", tool, session, got, want)
			}
		}
	}
}

// Like bash, file tools make the session's sandbox if there is none.
func TestFileToolsMakeASession(t *testing.T) {
	t.Parallel()
	for tool, arguments := range map[string]object{
		"read_file":  {"path": "f"},
		"write_file": {"path": "f", "content": "x"},
		"edit_file":  {"path": "f", "edits": []object{{"old": "a", "new": "b"}}},
		"list_files": {},
	} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			api := newAPI(t)
			call(t, newStack(t, api, shortWait).connect(eras[1], "alice", "new"), tool, arguments)
			if creates, _, _, _ := api.counts(); creates != 1 {
				t.Errorf("%d Sandboxes were created, want 1", creates)
			}
		})
	}
}
