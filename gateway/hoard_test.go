package gateway_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// A caller whose large calls run for long, and more of which wait, keeps no other
// caller's large call waiting.
func TestOneCallersLargeCallsAreInNobodysWay(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	hoarded, free := newAgent(t, "pod-1"), newAgent(t, "pod-2")
	api.put(t, readyOn(newSandbox("hoard", "alice"), hoarded))
	api.put(t, readyOn(newSandbox("s", "bob"), free))
	began := make(chan struct{}, 100)
	hoarded.exec = func(_ http.ResponseWriter, r *http.Request, _ client.ExecRequest) {
		began <- struct{}{}
		<-r.Context().Done()
	}
	s := newStack(t, api, nil)
	const large = 3 << 20 // of 4 MiB
	command := ": " + strings.Repeat("a", large)
	ctx, end := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	t.Cleanup(func() { end(); calls.Wait() })
	for range 8 {
		calls.Go(func() {
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/mcp", strings.NewReader(bashBody(eras[0], command)))
			if err != nil {
				t.Error(err)
				return
			}
			toolHeaders(eras[0], "hoard")(r)
			r.Header.Set("Authorization", "Bearer alice")
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				return // it was ended
			}
			defer resp.Body.Close()
			if answer, err := io.ReadAll(resp.Body); err == nil {
				t.Errorf("a call ended before its time: %s %.200s", resp.Status, answer)
			}
		})
	}
	for range 2 { // as many as have room
		select {
		case <-began:
		case <-time.After(patience):
			t.Fatal("the calls did not begin")
		}
	}
	start := time.Now()
	resp, body := s.do(http.MethodPost, "/mcp", "bob", strings.NewReader(bashBody(eras[0], command)), toolHeaders(eras[0], "s"))
	if took := time.Since(start); resp.StatusCode != http.StatusOK || !strings.Contains(body, `"exit_code":0`) || took > patience {
		t.Errorf("another caller's call: %s %.200s after %s, want a result at once", resp.Status, body, took)
	}
}
