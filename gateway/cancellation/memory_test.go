package cancellation

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// A JSON-RPC id may be as long as a body, and thousands of disconnects are
// remembered: what is remembered of each is small.
func TestLongIDsAreNotKept(t *testing.T) {
	const calls, length = 64, 1 << 20
	r := NewRegistry(time.Now)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range calls {
		call := Call{Caller: "alice", Session: "sandboxes/s", ID: fmt.Sprintf("%q", strings.Repeat("a", length)+fmt.Sprint(i))}
		_, cancel := context.WithCancelCause(t.Context())
		r.Begin(call, "id", cancel)(true)
		cancel(nil)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > calls*length/8 {
		t.Errorf("%d bytes are kept of %d calls with ids of %d", kept, calls, length)
	}
	if len(r.gone) != calls {
		t.Errorf("%d disconnects are remembered, want %d", len(r.gone), calls)
	}
}
