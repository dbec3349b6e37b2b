package front

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/gateway/cancellation"
	"github.com/berth-dev/berth/gateway/metrics"
	"github.com/berth-dev/berth/gateway/room"
)

// R21: large bodies wait for each other, small ones for nobody.
func TestLargeBodiesWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &Front{Metrics: metrics.New(func() int { return 0 }), Options: Options{MaxBody: 4 << 20}, bodies: room.New(bodyRoom, bodyRoom)}
		post := func(size int) (status int, took time.Duration) {
			start := time.Now()
			w := httptest.NewRecorder()
			share, ok := f.admitBody(w, httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(strings.Repeat(" ", size))))
			if ok {
				time.AfterFunc(10*time.Second, share.Release)
			}
			return w.Code, time.Since(start)
		}
		const most = 4 << 20
		for i := range bodyRoom / costOfBody / most {
			if status, took := post(most); status != http.StatusOK || took != 0 {
				t.Errorf("body %d: status %d after %s, want room at once", i, status, took)
			}
		}
		if status, took := post(smallBody - 1); status != http.StatusOK || took != 0 {
			t.Errorf("small body: status %d after %s, want room at once", status, took)
		}
		if status, took := post(most); status != http.StatusOK || took != 10*time.Second {
			t.Errorf("a body too many: status %d after %s, want room after 10 s", status, took)
		}
		if _, err := f.bodies.Take(t.Context(), bodyRoom); err != nil {
			t.Fatal(err)
		}
		if status, took := post(most); status != http.StatusServiceUnavailable || took != time.Minute {
			t.Errorf("no room: status %d after %s, want 503 after a minute", status, took)
		}
	})
}

// A body of unknown length takes the room of the largest only until it is known:
// clients and proxies that send in chunks would else block each other for as long
// as their commands run.
func TestUnannouncedBodyKeepsWhatItTakes(t *testing.T) {
	for size, want := range map[int]int64{10: 0, smallBody: smallBody * costOfBody} {
		synctest.Test(t, func(t *testing.T) { unannounced(t, size, want) })
	}
}

func unannounced(t *testing.T, size int, want int64) {
	f := &Front{
		Metrics: metrics.New(func() int { return 0 }), Calls: cancellation.NewRegistry(time.Now), bodies: room.New(bodyRoom, bodyRoom),
		Options: Options{MaxBody: 4 << 20, Draining: t.Context(), Ending: t.Context()},
	}
	free := func(bytes int64) bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		share, err := f.bodies.Take(ctx, bytes)
		share.Release()
		return err == nil
	}
	handler := f.cancel(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if !free(bodyRoom-want) || want > 0 && free(bodyRoom-want+1) {
			t.Errorf("a chunked body of %d bytes does not hold %d bytes of room", size, want)
		}
	}))
	body := `"` + strings.Repeat("x", size-2) + `"`
	r := httptest.NewRequest(http.MethodPost, "/mcp", io.MultiReader(strings.NewReader(body)))
	handler.ServeHTTP(httptest.NewRecorder(), r)
	if !free(bodyRoom) {
		t.Error("the room was not given back")
	}
}

// An announced length is a promise: memory comes with the bytes.
func TestAnnouncedLengthIsNotTrusted(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader("{}"))
	r.ContentLength = 4 << 20
	body, err := readBody(r)
	if err != nil || cap(body) > 2*firstRead {
		t.Errorf("%d bytes of memory for 2, error %v", cap(body), err)
	}
}
