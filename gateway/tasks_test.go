package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/gateway"
	agent "github.com/berth-dev/berth/sandbox-agent/client"
	"github.com/berth-dev/berth/test/localagent"
)

// taskParty is a gateway whose commands become tasks at once, and one that another
// client asks: both on one real agent.
type taskParty struct {
	a, b      *stack
	workspace string
}

func newTaskParty(t *testing.T) *taskParty {
	t.Helper()
	return newTaskPartyAfter(t, 10*time.Millisecond)
}

// newTaskPartyAfter is a party whose commands become tasks after that time.
func newTaskPartyAfter(t *testing.T, after time.Duration) *taskParty {
	t.Helper()
	workspace := t.TempDir()
	a, err := localagent.Start(t.Context(), localagent.Options{Workspace: workspace, Environ: []string{"PATH=/usr/bin:/bin"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Stop)
	api := newAPI(t)
	setSigningKey(t, api, a.Key)
	sandbox := readyOn(newSandbox("s", "alice"), &fakeAgent{audience: a.Pod.Namespace + "/" + a.Pod.UID, ip: a.Pod.IP.String()})
	sandbox.Status.KeyID = localagent.KeyID
	api.put(t, sandbox)
	soon := func(o *gateway.Options) { o.TaskAfter = after }
	agents := agent.Options{Port: a.Port, AllowLoopback: true}
	return &taskParty{a: newStackFor(t, api, agents, soon), b: newStackFor(t, api, agents, soon), workspace: workspace}
}

const tasksExtension = `{"io.modelcontextprotocol/tasks":{}}`

// taskRequest sends a request of 2026-07-28 and returns once its answer has begun.
func (s *stack) taskRequest(ctx context.Context, token, method, name, params, extensions string) *http.Response {
	s.t.Helper()
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":` + extensions + `}}`
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":{%s,%s}}`, method, params, meta)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/mcp", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	mcpHeaders(r, "2026-07-28")
	r.Header.Set("Mcp-Method", method)
	if name != "" {
		r.Header.Set("Mcp-Name", name)
	}
	if method == "tools/call" {
		r.Header.Set("X-Session-ID", "s")
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// message is what came back.
type taskMessage struct {
	Method string
	Params object
	Result object
	Error  *struct {
		Code    int
		Message string
		Data    any
	}
}

// read returns the next message of an answer.
func (s *stack) read(lines *bufio.Reader) (m taskMessage, ok bool) {
	s.t.Helper()
	for {
		line, err := lines.ReadString('\n')
		if data, is := strings.CutPrefix(line, "data: "); is || strings.HasPrefix(line, "{") {
			if err := json.Unmarshal([]byte(data), &m); err != nil {
				s.t.Fatalf("%q: %v", line, err)
			}
			return m, true
		}
		if err != nil {
			return m, false
		}
	}
}

// task asks about a task and returns the answer.
func (s *stack) task(token, method, id string) taskMessage {
	s.t.Helper()
	resp := s.taskRequest(s.t.Context(), token, method, id, fmt.Sprintf(`"taskId":%q`, id), tasksExtension)
	m, _ := s.read(bufio.NewReader(resp.Body))
	return m
}

// bashTask sends a command and returns the task that it became.
func (s *stack) bashTask(arguments string) object {
	s.t.Helper()
	resp := s.taskRequest(s.t.Context(), "alice", "tools/call", "bash", `"name":"bash","arguments":`+arguments, tasksExtension)
	m, _ := s.read(bufio.NewReader(resp.Body))
	if m.Result["resultType"] != "task" || m.Result["status"] != "working" || m.Result["taskId"] == "" {
		s.t.Fatalf("want a task, got %+v", m)
	}
	return m.Result
}

// listen follows a task to its end, and returns what was told of it.
func (s *stack) listen(id string) (told []object) {
	s.t.Helper()
	resp := s.taskRequest(s.t.Context(), "alice", "subscriptions/listen", "", fmt.Sprintf(`"notifications":{"taskIds":[%q,"a.b"]}`, id), tasksExtension)
	lines := bufio.NewReader(resp.Body)
	m, _ := s.read(lines)
	if want := (object{"taskIds": []any{id}}); m.Method != "notifications/subscriptions/acknowledged" || !cmp.Equal(m.Params["notifications"], want) {
		s.t.Fatalf("acknowledged %+v", m)
	}
	for m, ok := s.read(lines); ok; m, ok = s.read(lines) {
		if m.Result != nil {
			if m.Result["resultType"] != "complete" {
				s.t.Errorf("last message %+v", m)
			}
			return told
		}
		meta, _ := m.Params["_meta"].(map[string]any)
		if m.Method != "notifications/tasks" || meta["io.modelcontextprotocol/subscriptionId"] != 7. {
			s.t.Fatalf("message %+v", m)
		}
		told = append(told, m.Params)
	}
	s.t.Fatalf("the stream broke off after %v", told)
	return nil
}

// content is the structured result of a completed task.
func content(t *testing.T, task object) (structured map[string]any, isError bool) {
	t.Helper()
	result, _ := task["result"].(map[string]any)
	structured, _ = result["structuredContent"].(map[string]any)
	if task["status"] != "completed" || structured == nil {
		t.Fatalf("want a result, got %+v", task)
	}
	isError, _ = result["isError"].(bool)
	return structured, isError
}

// TestTaskOfALongCommand: what one replica began, another one follows to its end; its
// result is that of a call; nobody else learns of it.
func TestTaskOfALongCommand(t *testing.T) {
	t.Parallel()
	p := newTaskParty(t)
	id := p.a.bashTask(`{"command":"until [ -e go ]; do sleep 0.01; done; x=kept; echo out; echo err >&2; (exit 3)"}`)["taskId"].(string)
	for _, s := range []*stack{p.a, p.b} {
		if m := s.task("alice", "tasks/get", id); m.Result["status"] != "working" || m.Result["resultType"] != "complete" || m.Result["ttlMs"] != nil {
			t.Fatalf("while it runs: %+v", m)
		}
	}
	for _, method := range []string{"tasks/get", "tasks/cancel", "tasks/update"} {
		if m := p.b.task("bob", method, id); m.Error == nil || m.Error.Code != -32602 {
			t.Errorf("%s by another caller: %+v", method, m)
		}
	}
	if err := os.WriteFile(filepath.Join(p.workspace, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	told := p.b.listen(id)
	if len(told) < 1 || told[0]["status"] != "working" && len(told) != 1 {
		t.Fatalf("told %v", told)
	}
	out, isError := content(t, told[len(told)-1])
	delete(out, "duration_ms")
	if diff := cmp.Diff(map[string]any{"stdout": "out\n", "stderr": "err\n", "exit_code": 3.}, out); diff != "" || !isError {
		t.Errorf("isError %v, result (-want +got):\n%s", isError, diff)
	}
	p.keepsItsEnd(t, id)
}

// keepsItsEnd asks once more for a task that has ended, and cancels it.
func (p *taskParty) keepsItsEnd(t *testing.T, id string) {
	t.Helper()
	got := p.a.task("alice", "tasks/get", id).Result
	if again, _ := content(t, got); again["stdout"] != "out\n" || got["ttlMs"].(float64) < 3600_000 || got["pollIntervalMs"] != nil {
		t.Errorf("once more: %+v", got)
	}
	if m := p.a.task("alice", "tasks/cancel", id); m.Error != nil || m.Result["resultType"] != "complete" || m.Result["status"] != nil {
		t.Errorf("cancel of what has ended: %+v", m)
	}
	if p.a.task("alice", "tasks/get", id).Result["status"] != "completed" {
		t.Error("it was cancelled after its end")
	}
}

// TestShortCommandsGetTheirResult, as everybody does who doesn't declare the
// extension.
func TestShortCommandsGetTheirResult(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	resp := l.taskRequest(t.Context(), "alice", "tools/call", "bash", `"name":"bash","arguments":{"command":"echo"}`, tasksExtension)
	if m, _ := l.read(bufio.NewReader(resp.Body)); m.Result["resultType"] != "complete" || m.Result["taskId"] != nil {
		t.Errorf("got %+v", m)
	}
	p := newTaskParty(t)
	resp = p.a.taskRequest(t.Context(), "alice", "tools/call", "bash", `"name":"bash","arguments":{"command":"sleep 0.2; echo done"}`, "{}")
	if m, _ := p.a.read(bufio.NewReader(resp.Body)); m.Result["resultType"] != "complete" || m.Result["taskId"] != nil {
		t.Errorf("without the extension: %+v", m)
	}
	for _, method := range []string{"tasks/get", "tasks/cancel", "tasks/update", "subscriptions/listen"} {
		resp := p.a.taskRequest(t.Context(), "alice", method, "x", `"taskId":"x","inputResponses":{},"notifications":{"taskIds":["x"]}`, "{}")
		if m, _ := p.a.read(bufio.NewReader(resp.Body)); m.Error == nil || m.Error.Code != -32021 || m.Error.Data == nil || resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s without the extension: %d %+v", method, resp.StatusCode, m)
		}
	}
}

// TestTaskIsCancelled from another replica: a command and a process, with all that
// they started; the shell goes on.
func TestTaskIsCancelled(t *testing.T) {
	t.Parallel()
	p := newTaskParty(t)
	for _, arguments := range []string{`{"command":"sleep 1000 & wait"}`, `{"command":"sleep 1000 & wait","background":true}`} {
		task := p.a.bashTask(arguments)
		id := task["taskId"].(string)
		if m := p.b.task("alice", "tasks/cancel", id); m.Error != nil || m.Result["resultType"] != "complete" {
			t.Fatalf("cancel: %+v", m)
		}
		told := p.b.listen(id)
		if last := told[len(told)-1]; last["status"] != "cancelled" || last["result"] != nil || last["error"] != nil {
			t.Errorf("%s: %+v", arguments, last)
		}
	}
	c := p.a.connect(eras[1], "alice", "s")
	if out := structured(t, bash(t, c, "pgrep -x sleep || echo none")); out["stdout"] != "none\n" {
		t.Errorf("what they started: %v", out)
	}
}

// TestTaskOfABackgroundProcess: the model reaches it as any other meanwhile, and its
// result is what it wrote last.
func TestTaskOfABackgroundProcess(t *testing.T) {
	t.Parallel()
	p := newTaskParty(t)
	task := p.a.bashTask(`{"command":"head -c 300000 /dev/zero | tr '\\0' x; read line; echo $line; exit 3","background":true}`)
	id := task["taskId"].(string)
	process := strings.Split(id, ".")[2]
	if !strings.Contains(task["statusMessage"].(string), process) {
		t.Errorf("its message %q doesn't name %s", task["statusMessage"], process)
	}
	c := p.b.connect(eras[1], "alice", "s")
	structured(t, call(t, c, "process_input", map[string]any{"process_id": process, "input": "hello\n"}))
	told := p.b.listen(id)
	out, isError := content(t, told[len(told)-1])
	stdout := out["stdout"].(string)
	if !isError || out["exit_code"] != 3. || out["process_id"] != process || len(stdout) != agent.DefaultOutputBytes ||
		!strings.HasSuffix(stdout, "xhello\n") || out["truncated"] != true || out["omitted_bytes"] != float64(300006-agent.DefaultOutputBytes) {
		t.Errorf("isError %v, result %.200v, %d bytes", isError, out, len(stdout))
	}
}

// TestTaskOfAPodThatIsGone has failed, with the reason; one of a session that is
// gone, or that never was, isn't known.
func TestTaskOfAPodThatIsGone(t *testing.T) {
	t.Parallel()
	p := newTaskParty(t)
	id := p.a.bashTask(`{"command":"sleep 1000"}`)["taskId"].(string)
	parts := strings.Split(id, ".")
	with := func(i int, s string) string {
		changed := append([]string(nil), parts...)
		changed[i] = s
		return strings.Join(changed, ".")
	}
	for name, other := range map[string]string{
		"no id": "x", "session": with(1, "other"), "namespace": with(0, "other"), "command": with(2, "t-"+strings.Repeat("0", 32)),
	} {
		for _, method := range []string{"tasks/get", "tasks/cancel", "tasks/update"} {
			if m := p.b.task("alice", method, other); m.Error == nil || m.Error.Code != -32602 {
				t.Errorf("another %s: %s: %+v", name, method, m)
			}
		}
	}
	m := p.b.task("alice", "tasks/get", with(3, "00000000"))
	failure, _ := m.Result["error"].(map[string]any)
	if m.Result["status"] != "failed" || failure["code"] != -32603. || m.Result["statusMessage"] == "" {
		t.Errorf("another pod: %+v", m)
	}
	if m := p.b.task("alice", "tasks/cancel", with(3, "00000000")); m.Error != nil {
		t.Errorf("cancel in another pod: %+v", m)
	}
	p.a.task("alice", "tasks/cancel", id)
}

// TestACallThatIsNoTaskYetEndsWithItsClient: nobody could ask for it. The shell is
// free for the next command, and as it was.
func TestACallThatIsNoTaskYetEndsWithItsClient(t *testing.T) {
	t.Parallel()
	p := newTaskPartyAfter(t, time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// Its answer begins with the keep-alive.
	p.a.taskRequest(ctx, "alice", "tools/call", "bash", `"name":"bash","arguments":{"command":"x=lost; sleep 1000; touch over"}`, tasksExtension)
	cancel()
	c := p.b.connect(eras[1], "alice", "s")
	if out := structured(t, bash(t, c, `echo "[$x]"; [ ! -e over ]`)); out["stdout"] != "[]\n" {
		t.Errorf("next command: %v", out)
	}
}

// TestTheNameOfATaskIsInItsHeader: 400 when it is another's.
func TestTheNameOfATaskIsInItsHeader(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	for _, method := range []string{"tasks/get", "tasks/cancel", "tasks/update"} {
		for _, name := range []string{"", "y"} {
			resp := l.taskRequest(t.Context(), "alice", method, name, `"taskId":"x","inputResponses":{}`, tasksExtension)
			if m, _ := l.read(bufio.NewReader(resp.Body)); resp.StatusCode != http.StatusBadRequest || m.Error == nil || m.Error.Code != -32020 {
				t.Errorf("%s with %q: %d %+v", method, name, resp.StatusCode, m)
			}
		}
	}
}

// TestListeningEndsWithTheGateway, which drains.
func TestListeningEndsWithTheGateway(t *testing.T) {
	t.Parallel()
	p := newTaskParty(t)
	id := p.a.bashTask(`{"command":"sleep 1000"}`)["taskId"].(string)
	resp := p.b.taskRequest(t.Context(), "alice", "subscriptions/listen", "", fmt.Sprintf(`"notifications":{"taskIds":[%q]}`, id), tasksExtension)
	lines := bufio.NewReader(resp.Body)
	for range 2 { // acknowledged, and how it is
		p.b.read(lines)
	}
	p.b.stop()
	if m, ok := p.b.read(lines); ok {
		t.Errorf("got %+v", m)
	}
	// The task goes on without the replica.
	if m := p.a.task("alice", "tasks/get", id); m.Result["status"] != "working" {
		t.Errorf("after it: %+v", m)
	}
	p.a.task("alice", "tasks/cancel", id)
}
