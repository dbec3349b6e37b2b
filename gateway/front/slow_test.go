package front

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/gateway/metrics"
)

// A body that drips is given up when its time is over, and its connection closed,
// however much of it has come; nothing behind it sees it.
func TestDrippingBodyIsGivenUp(t *testing.T) {
	t.Parallel()
	const limit = 200 * time.Millisecond
	f := &Front{Metrics: metrics.New(func() int { return 0 }), Options: Options{MaxBody: 1 << 20, BodyTimeout: limit}}
	failed := make(chan error, 1)
	server := httptest.NewServer(f.limit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		failed <- err
		f.refuseBody(w, err)
	})))
	t.Cleanup(server.Close)
	conn, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	begun := time.Now()
	if _, err := io.WriteString(conn, "POST /mcp HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	drip := time.NewTicker(limit / 20)
	go func() {
		for range drip.C {
			if _, err := io.WriteString(conn, " "); err != nil {
				return
			}
		}
	}()
	if err := conn.SetReadDeadline(begun.Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil && len(answer) == 0 {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(answer), "HTTP/1.1 400 Bad Request\r\n") || !strings.Contains(string(answer), `"bad_body"`) || !strings.Contains(string(answer), "Connection: close") {
		t.Errorf("answer %q, want 400 and the end of the connection", answer)
	}
	if took := time.Since(begun); took < limit {
		t.Errorf("given up after %s, want %s at least", took, limit)
	}
	if err := <-failed; err == nil {
		t.Error("the body was read whole")
	}
}
