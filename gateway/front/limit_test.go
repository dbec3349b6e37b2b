package front

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/gateway/metrics"
	"github.com/berth-dev/berth/gateway/room"
)

// R21: large bodies wait for each other, small ones for nobody.
func TestLargeBodiesWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &Front{Metrics: metrics.New(func() int { return 0 }), Options: Options{MaxBody: 4 << 20}, bodies: room.New(bodyRoom)}
		post := func(size int) (status int, took time.Duration) {
			start := time.Now()
			w := httptest.NewRecorder()
			release, ok := f.admitBody(w, httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(strings.Repeat(" ", size))))
			if ok {
				time.AfterFunc(10*time.Second, release)
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
