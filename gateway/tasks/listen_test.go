package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/gateway/audit"
)

// fake is a source of tasks that end after a while, which their names say.
type fake struct {
	Source
	began time.Time
	err   error // of whoever waits
}

func (f fake) Get(ctx context.Context, _ http.Header, id string, wait time.Duration) (*Task, error) {
	takes, err := time.ParseDuration(id)
	if err != nil {
		return nil, ErrNotFound
	}
	if wait > 0 && f.err != nil {
		return nil, f.err
	}
	select {
	case <-time.After(min(wait, takes-time.Since(f.began))):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	task := &Task{ID: id, Status: Working}
	if time.Since(f.began) >= takes {
		task.Status = Completed
	}
	return task, nil
}

// listening sends a subscription and returns what was told, in short.
func listening(t *testing.T, l Listener, ids []string, change func(*http.Request)) (status int, told []string) {
	t.Helper()
	encoded, err := json.Marshal(ids)
	if err != nil {
		t.Fatal(err)
	}
	body := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"taskIds":` + string(encoded) + `},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", strings.NewReader(body))
	for k, v := range map[string]string{
		"Mcp-Method": "subscriptions/listen", "Mcp-Protocol-Version": "2026-07-28",
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
	} {
		r.Header.Set(k, v)
	}
	change(r)
	w := httptest.NewRecorder()
	l.ServeHTTP(w, r)
	if later := w.Header().Get("Retry-After"); (later != "") != (w.Code == http.StatusServiceUnavailable) {
		t.Errorf("%d with Retry-After %q", w.Code, later)
	}
	for event := range strings.SplitSeq(w.Body.String(), "\n\n") {
		data, ok := strings.CutPrefix(event, "event: message\ndata: ")
		if !ok {
			continue
		}
		var m struct {
			Method string
			Params struct {
				TaskID, Status string
				Notifications  struct{ TaskIDs []string }
			}
			Result *struct{ ResultType string }
		}
		if err := json.Unmarshal([]byte(data), &m); err != nil {
			t.Fatalf("%q: %v", event, err)
		}
		switch {
		case m.Result != nil:
			told = append(told, "result "+m.Result.ResultType)
		case m.Method == methodAcknowledged:
			told = append(told, fmt.Sprint("agreed ", len(m.Params.Notifications.TaskIDs)))
		default:
			told = append(told, m.Params.TaskID+" "+m.Params.Status)
		}
	}
	return w.Code, told
}

func unchanged(*http.Request) {}

func passed(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }

func newListener(source Source) Listener {
	return Listener{
		Source: source, Next: http.HandlerFunc(passed), Enter: func(context.Context) (func(), bool) { return func() {}, true },
		Ended: func(context.Context, *audit.Call) {},
	}
}

func TestListeningTellsHowTasksAreAndHowTheyEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		status, told := listening(t, newListener(fake{began: began}), []string{"3m", "0s", "other", "3m", "1s"}, unchanged)
		want := "agreed 3,3m working,0s completed,1s working,1s completed,3m completed,result complete"
		if got := strings.Join(told, ","); got != want || status != http.StatusOK || time.Since(began) != 3*time.Minute {
			t.Errorf("%d after %v: %s, want %s", status, time.Since(began), got, want)
		}
	})
}

func TestListeningIsBounded(t *testing.T) {
	t.Parallel()
	var ids []string
	for i := range MaxListened + 1 {
		ids = append(ids, fmt.Sprintf("%dns", i))
	}
	for n, want := range map[int]string{MaxListened - 1: "agreed 63", MaxListened: "agreed 64", MaxListened + 1: "agreed 64"} {
		if _, told := listening(t, newListener(fake{}), ids[:n], unchanged); len(told) == 0 || told[0] != want {
			t.Errorf("%d: told %v", n, told)
		}
	}
	l := newListener(fake{})
	l.Enter = func(context.Context) (func(), bool) { return nil, false }
	if status, told := listening(t, l, ids[:1], unchanged); status != http.StatusServiceUnavailable || told != nil {
		t.Errorf("without a place: %d %v", status, told)
	}
}

// TestListeningToWhatIsForgottenOrCantBeAsked: the one has failed, the other one's
// stream has no end, so that its client asks again.
func TestListeningToWhatIsForgottenOrCantBeAsked(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]string{
		ErrNotFound:        "agreed 1,1m working,1m failed,result complete",
		errors.New("away"): "agreed 1,1m working",
	} {
		if _, told := listening(t, newListener(fake{began: time.Now(), err: err}), []string{"1m"}, unchanged); strings.Join(told, ",") != want {
			t.Errorf("%v: told %v", err, told)
		}
	}
}

func TestListeningEndsWithItsClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, told := listening(t, newListener(fake{began: time.Now()}), []string{"1h"}, func(r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), time.Second)
			t.Cleanup(cancel)
			*r = *r.WithContext(ctx)
		})
		if got := strings.Join(told, ","); got != "agreed 1,1h working" {
			t.Errorf("told %s", got)
		}
	})
}

// TestWhatIsNoSubscriptionToTasksGoesOn to the SDK, as it came.
func TestWhatIsNoSubscriptionToTasksGoesOn(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*http.Request){
		"another method":  func(r *http.Request) { r.Header.Set("Mcp-Method", "tools/list") },
		"another in body": func(r *http.Request) { r.Header.Set("Mcp-Method", "tasks/get") },
		"older version":   func(r *http.Request) { r.Header.Set("Mcp-Protocol-Version", "2025-11-25") },
		"no stream":       func(r *http.Request) { r.Header.Set("Accept", "application/json") },
		"no JSON":         func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") },
		"GET":             func(r *http.Request) { r.Method = http.MethodGet },
	} {
		if status, _ := listening(t, newListener(fake{}), []string{"1s"}, change); status != http.StatusTeapot {
			t.Errorf("%s: %d", name, status)
		}
	}
	if status, _ := listening(t, newListener(fake{}), nil, unchanged); status != http.StatusTeapot {
		t.Errorf("no tasks: %d", status)
	}
}
