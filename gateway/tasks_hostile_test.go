package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/gateway/tasks"
	agent "github.com/berth-dev/berth/sandbox-agent/client"
)

// forgedIDs are ids of no task of alice's, by what is wrong with them.
func forgedIDs() map[string]string {
	real := tasks.ID{Key: session.Key{Namespace: "sandboxes", Name: "s"}, Name: "t-" + strings.Repeat("1", 32), Pod: tasks.Mark("pod-1"), Created: 1767323045}
	with := func(change func(*tasks.ID)) string {
		id := real
		change(&id)
		return id.String()
	}
	s := real.String()
	return map[string]string{
		"another command":       with(func(id *tasks.ID) { id.Name = "t-" + strings.Repeat("5", 32) }),
		"another process":       with(func(id *tasks.ID) { id.Name = "p-" + strings.Repeat("5", 16) }),
		"bob's session":         with(func(id *tasks.ID) { id.Key.Name = "bobs" }),
		"no session":            with(func(id *tasks.ID) { id.Key.Name = "none" }),
		"another namespace":     with(func(id *tasks.ID) { id.Namespace = "kube-system" }),
		"a path for a name":     strings.Replace(s, ".t-", ".t-../../v1/session", 1),
		"a query in its name":   strings.Replace(s, ".t-1", ".t-?", 1),
		"upper case":            strings.ToUpper(s),
		"a part more":           s + ".1",
		"a part less":           s[:strings.LastIndex(s, ".")],
		"a time of 0":           with(func(id *tasks.ID) { id.Created = 0 }),
		"a time before":         with(func(id *tasks.ID) { id.Created = -1 }),
		"a time with a 0 first": strings.Replace(s, ".1767", ".01767", 1),
		"a time too long":       s + "000",
		"a line more":           s + "\n",
		"empty":                 "",
		"dots":                  "....",
		"long":                  strings.Repeat("a", 1<<20),
		"of a JSON number's":    "1e3",
	}
}

// Whatever is wrong with a task's id, the answer is that for a random one, byte by
// byte; no session is made, and no agent learns of what is not a task's of its own.
func TestForgedTaskIDsAreAllAsUnknown(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	detachAll(l.agent)
	l.agent.session = &agent.Session{}
	other := newAgent(t, "pod-2")
	detachAll(other)
	l.api.put(t, readyOn(newSandbox("bobs", "bob"), other))
	l.task("alice", "tasks/get", taskID("1", "pod-1")) // by now the gateway knows whom it serves
	asked := l.agent.requests.Load()
	creates, _, _, _ := l.api.counts()
	answer := func(method, id string) string {
		t.Helper()
		resp := l.taskRequest(t.Context(), "alice", method, id, fmt.Sprintf(`"taskId":%q,"inputResponses":{}`, id), tasksExtension)
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(resp.StatusCode, " ", string(body))
	}
	for _, method := range []string{"tasks/get", "tasks/cancel", "tasks/update"} {
		want := answer(method, "x")
		for name, id := range forgedIDs() {
			if strings.ContainsAny(id, "\n") || len(id) > 64<<10 || id == "" {
				continue // no header can have it
			}
			if got := answer(method, id); got != want {
				t.Errorf("%s of %s: %.300s\nwant %s", method, name, got, want)
			}
		}
	}
	if n := l.agent.requests.Load() - asked; n != 3*2 {
		t.Errorf("the agent was asked %d times, want twice for each method: a command and a process of its own", n)
	}
	if n := other.requests.Load(); n != 0 {
		t.Errorf("bob's agent was asked %d times", n)
	}
	if now, _, _, _ := l.api.counts(); now != creates {
		t.Errorf("%d objects were made", now-creates)
	}
	for name, id := range forgedIDs() { // in a body there is all
		resp := l.taskRequest(t.Context(), "alice", "subscriptions/listen", "", fmt.Sprintf(`"notifications":{"taskIds":[%q]}`, id), tasksExtension)
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(body), `"taskIds":[]`) {
			t.Errorf("listening to %s: %d %.300s, %v", name, resp.StatusCode, body, err)
		}
	}
	if n := other.requests.Load(); n != 0 {
		t.Errorf("bob's agent was asked %d times", n)
	}
}

// A task that is cancelled just when it ends, by many at once and while others ask, has
// one end, which stays; the shell goes on, and what was cancelled in the queue never
// ran.
func TestCancellingRacesWithTheEnd(t *testing.T) {
	t.Parallel()
	p := newTaskParty(t)
	for i := range 12 {
		id := p.a.bashTask(`{"command":"until [ -e go ]; do sleep 0.01; done; rm go"}`)["taskId"].(string)
		queued := p.b.bashTask(`{"command":"echo >>ran"}`)["taskId"].(string)
		var all sync.WaitGroup
		ask := func(s *stack, method, id string) {
			all.Go(func() {
				if m := s.task("alice", method, id); m.Error != nil {
					t.Errorf("%s: %+v", method, m.Error)
				}
			})
		}
		if i%2 == 0 { // else it, too, is cancelled while it begins
			ask(p.a, "tasks/cancel", queued)
			all.Wait()
		}
		if err := os.WriteFile(filepath.Join(p.workspace, "go"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		ask(p.b, "tasks/cancel", queued)
		for _, s := range []*stack{p.a, p.b, p.a, p.b} {
			ask(s, "tasks/get", id)
			ask(s, "tasks/cancel", id)
		}
		all.Wait()
		told := p.b.listen(id)
		end := told[len(told)-1]
		for _, s := range []*stack{p.a, p.b} {
			s.task("alice", "tasks/cancel", id)
			if again := s.task("alice", "tasks/get", id).Result; again["status"] != end["status"] || again["lastUpdatedAt"] != end["lastUpdatedAt"] {
				t.Errorf("%d: it ended as %v, and then as %v", i, end, again)
			}
		}
		told = p.a.listen(queued)
		status := told[len(told)-1]["status"]
		c := p.a.connect(eras[1], "alice", "s")
		if out := structured(t, bash(t, c, "cat ran 2>/dev/null | wc -l; rm -f ran go")); i%2 == 0 && out["stdout"] != "0\n" || (status == "completed") && out["stdout"] != "1\n" {
			t.Errorf("%d: the queued one is %v, and ran %q times", i, status, out["stdout"])
		}
	}
}

// An agent that lies about a task does no more than fail what asks about it.
func TestAgentThatLiesAboutTasks(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	var state string
	l.agent.before = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/v1/exec/") {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, state) // its caller fails without it
		return true
	}
	id := taskID("1", "pod-1")
	name := `"id":"t-` + strings.Repeat("1", 32) + `"`
	for what, lie := range map[string]string{
		"another command":       `{"id":"t-` + strings.Repeat("2", 32) + `","running":true,"sent":"2026-01-02T03:04:05Z"}`,
		"runs and has ended":    `{` + name + `,"running":true,"ended":"2026-01-02T03:04:05Z"}`,
		"ended without an end":  `{` + name + `,"running":false,"ended":"2026-01-02T03:04:05Z"}`,
		"a result and an error": `{` + name + `,"ended":"2026-01-02T03:04:05Z","result":{},"error":{"code":"a"}}`,
		"kept for ever":         `{` + name + `,"ended":"2026-01-02T03:04:05Z","expires_in":3601,"result":{}}`,
		"an exit code of 256":   `{` + name + `,"ended":"2026-01-02T03:04:05Z","result":{"exit_code":256}}`,
		"another's log":         `{` + name + `,"ended":"2026-01-02T03:04:05Z","result":{"log":{"stdout":{"id":"` + artifactID + `","path":"/etc/passwd","size":1}}}}`,
		"no JSON":               `<html>`,
		"nothing":               ``,
		"a time that is none":   `{` + name + `,"running":true,"sent":"yesterday"}`,
	} {
		state = lie
		if m := l.task("alice", "tasks/get", id); m.Error == nil || m.Error.Code != -32603 || m.Result != nil {
			t.Errorf("%s: %+v", what, m)
		}
	}
	for what, truth := range map[string]string{
		"times of all years":      `{` + name + `,"sent":"0001-01-01T00:00:00Z","ended":"9999-12-31T23:59:59Z","result":{}}`,
		"an end before its begin": `{` + name + `,"sent":"9999-12-31T23:59:59Z","ended":"0001-01-01T00:00:00Z","result":{}}`,
	} {
		state = truth
		if m := l.task("alice", "tasks/get", id); m.Result["status"] != "completed" || m.Result["ttlMs"].(float64) < 1 {
			t.Errorf("%s: %+v", what, m)
		}
	}
}
