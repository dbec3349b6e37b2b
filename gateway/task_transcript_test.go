package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/gateway/tasks"
	agent "github.com/berth-dev/berth/sandbox-agent/client"
)

// detachedID is what replaces the ids of commands in transcripts, and detachedIDs are
// those.
const detachedID = "t-0123456789abcdef0123456789abcdef"

var detachedIDs = regexp.MustCompile(`t-[0-9a-f]{32}`)

// detachedStates are how commands are in a fake agent, by the first digit of their ids:
// what there is beside id and sent.
var detachedStates = map[byte]string{
	'1': `"running":true`,
	'2': ended + `"result":{"stdout":"out\n","stderr":"err\n","exit_code":3,"duration_ms":90000,"stdout_bytes":4,"stderr_bytes":4}`,
	'3': ended + `"cancelled":true,"result":{"exit_code":137,"duration_ms":90000,"notice":"The command was cancelled."}`,
	'4': ended + `"error":{"code":"draining","message":"the sandbox is shutting down"}`,
}

// ended is what all have that have ended.
const ended = `"running":false,"ended":"2026-01-02T03:05:35Z","expires_in":3600,`

// detachAll lets a fake agent detach each command that may be, and tell of detachedStates.
func detachAll(a *fakeAgent) {
	a.exec = func(w http.ResponseWriter, _ *http.Request, req agent.ExecRequest) {
		if req.DetachAfter == 0 {
			agentJSON(w, agent.ExecResult{Stdout: "made\n", DurationMS: 1, StdoutBytes: 5})
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		_ = json.NewEncoder(w).Encode(agent.ExecState{ID: req.ID, Running: true, Sent: fakeStart}) // its caller fails without it
	}
	a.before = func(w http.ResponseWriter, r *http.Request) bool {
		id, ok := strings.CutPrefix(r.URL.Path, "/v1/exec/t-")
		if !ok {
			return false
		}
		switch state, known := detachedStates[id[0]]; {
		case !known:
			agentError(w, http.StatusNotFound, "not_found", "no command with this id was detached")
		case r.Method == http.MethodDelete:
			w.WriteHeader(http.StatusNoContent)
		default:
			agentJSON(w, json.RawMessage(fmt.Sprintf(`{"id":"t-%s","sent":%q,%s}`, id, fakeStart.Format(time.RFC3339), state)))
		}
		return true
	}
}

// taskID is that of a command of a fake agent.
func taskID(digit, podUID string) string {
	return tasks.ID{Key: session.Key{Namespace: "sandboxes", Name: "s"}, Name: "t-" + strings.Repeat(digit, 32), Pod: tasks.Mark(podUID), Created: fakeStart.Unix()}.String()
}

// What a client that declares the extension sends and gets, byte by byte; and what one
// of the older era does, which can't.
func TestTaskTranscripts(t *testing.T) {
	t.Parallel()
	task := func(digit string) string { return fmt.Sprintf(`"taskId":%q`, taskID(digit, "pod-1")) }
	exchanges := []struct{ name, method, params string }{
		{"tasks-create", "tools/call", `"name":"bash","arguments":{"command":"make"}`},
		{"tasks-get-working", "tasks/get", task("1")},
		{"tasks-get-completed", "tasks/get", task("2")},
		{"tasks-get-cancelled", "tasks/get", task("3")},
		{"tasks-get-failed", "tasks/get", task("4")},
		{"tasks-get-lost", "tasks/get", fmt.Sprintf(`"taskId":%q`, taskID("1", "pod-0"))},
		{"tasks-get-unknown", "tasks/get", task("5")},
		{"tasks-get-malformed", "tasks/get", `"taskId":"x"`},
		{"tasks-cancel", "tasks/cancel", task("1")},
		{"tasks-cancel-unknown", "tasks/cancel", task("5")},
		{"tasks-update", "tasks/update", task("1") + `,"inputResponses":{}`},
		{"tasks-listen", "subscriptions/listen", fmt.Sprintf(`"notifications":{"taskIds":[%q,"x",%q]}`, taskID("2", "pod-1"), taskID("1", "pod-0"))},
	}
	forEachEra(t, func(t *testing.T, era string) {
		for _, x := range exchanges {
			t.Run(x.name, func(t *testing.T) {
				t.Parallel()
				l := newLive(t)
				detachAll(l.agent)
				l.agent.session = &agent.Session{}
				body := strings.Replace(message(era, x.method, x.params), `clientCapabilities":{}`, `clientCapabilities":{"extensions":`+tasksExtension+`}`, 1)
				resp, answer := l.do(http.MethodPost, "/mcp", "alice", strings.NewReader(body), func(r *http.Request) {
					mcpHeaders(r, era)
					r.Header.Set("X-Session-ID", "s")
					r.Header.Set("X-Request-ID", "r-1")
					if era >= "2026-07-28" {
						r.Header.Set("Mcp-Method", x.method)
						r.Header.Set("Mcp-Name", taskNameOf(x.params))
					}
				})
				if x.name == "tasks-create" {
					answer = detachedIDs.ReplaceAllString(answer, detachedID)
				}
				compare(t, filepath.Join(era, x.name+".http"), transcript(body, resp, answer))
			})
		}
	})
}

// taskNameOf is what the header Mcp-Name repeats, of tasks too.
func taskNameOf(params string) string {
	if rest, ok := strings.CutPrefix(params, `"taskId":"`); ok {
		name, _, _ := strings.Cut(rest, `"`)
		return name
	}
	return nameOf(params)
}
