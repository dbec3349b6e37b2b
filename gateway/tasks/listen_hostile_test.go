package tasks

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway/cancellation"
)

// hasty is a source whose agent answers at once, whatever it was asked to wait, and
// whose tasks end when they were asked about so often.
type hasty struct {
	Source
	asked, ends int
	// held is how many answers have room, most how many had it at once.
	held, most int
}

func (h *hasty) Get(ctx context.Context, _ http.Header, id string, _ time.Duration) (*Task, error) {
	h.asked++
	h.held++
	h.most = max(h.most, h.held)
	cancellation.AtEnd(ctx, func() { h.held-- })
	task := &Task{ID: id, Status: Working}
	if h.asked >= h.ends {
		task.Status, task.Result = Completed, &mcp.CallToolResult{}
	}
	synctest.Wait() // until what was given back is
	return task, nil
}

// An agent that doesn't wait for the end of a task doesn't keep the gateway busy, and
// nothing is kept of its answers.
func TestAgentThatDoesNotWaitIsAskedNowAndThen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		source := &hasty{ends: 1000}
		_, told := listening(t, newListener(source), []string{"x"}, unchanged)
		if got, want := strings.Join(told, ","), "agreed 1,x working,x completed,result complete"; got != want {
			t.Errorf("told %s, want %s", got, want)
		}
		if took, least := time.Since(began), 998*PollInterval; took < least {
			t.Errorf("asked 1000 times within %s, want %s at least", took, least)
		}
		if source.most != 1 {
			t.Errorf("the room of %d answers was held at a time, want 1", source.most)
		}
	})
}

// Of tasks that have ended, the results are held one at a time, however slowly the
// client reads.
func TestResultsAreHeldOneAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		source := &hasty{}
		_, told := listening(t, newListener(source), []string{"x", "y", "z"}, unchanged)
		if got, want := strings.Join(told, ","), "agreed 3,x completed,y completed,z completed,result complete"; got != want {
			t.Errorf("told %s, want %s", got, want)
		}
		if source.most != 1 || source.asked != 6 {
			t.Errorf("%d answers were held at a time and %d asked for, want 1 and 6", source.most, source.asked)
		}
	})
}

// Each task that is waited for is a request to an agent: it takes a place, beyond the
// stream's own, until the stream ends. What finds none isn't agreed to.
func TestEachTaskThatIsWaitedForTakesAPlace(t *testing.T) {
	t.Parallel()
	for places, want := range map[int]string{
		1: "agreed 2,0s completed,1m working,1m completed,result complete",
		2: "agreed 3,0s completed,1m working,2m working,1m completed,2m completed,result complete",
		3: "agreed 4,0s completed,1m working,2m working,3m working,1m completed,2m completed,3m completed,result complete",
	} {
		synctest.Test(t, func(t *testing.T) {
			left := places
			l := newListener(fake{began: time.Now()})
			l.Enter = func(context.Context) (func(), bool) {
				if left == 0 {
					return nil, false
				}
				left--
				return func() { left++ }, true
			}
			_, told := listening(t, l, []string{"0s", "1m", "2m", "3m"}, unchanged)
			if got := strings.Join(told, ","); got != want || left != places {
				t.Errorf("%d places: told %s, want %s; %d are left", places, got, want, left)
			}
		})
	}
}

// mistaken is a source that panics for whoever waits.
type mistaken struct{ Source }

func (mistaken) Get(_ context.Context, _ http.Header, id string, wait time.Duration) (*Task, error) {
	if wait > 0 {
		panic("a mistake")
	}
	return &Task{ID: id, Status: Working}, nil
}

// A panic while a task is followed ends its stream, not the gateway.
func TestPanicEndsAStreamAlone(t *testing.T) {
	t.Parallel()
	l := newListener(mistaken{})
	told := make(chan any, 2)
	l.Panicked = func(_ context.Context, p any) { told <- p }
	_, events := listening(t, l, []string{"x", "y"}, unchanged)
	if got, want := strings.Join(events, ","), "agreed 2,x working,y working"; got != want || len(told) != 2 || <-told != "a mistake" {
		t.Errorf("told %s, want %s; and %d panics, want 2", got, want, len(told))
	}
}
