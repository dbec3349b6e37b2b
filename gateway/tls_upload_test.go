package gateway_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	agent "github.com/berth-dev/berth/sandbox-agent/client"
)

// newUploadTLS is a client, over HTTP/2 or HTTP/1.1 with TLS, of a gateway that has a
// session of alice's on a fake agent.
func newUploadTLS(t *testing.T, http2 bool) (overTLS, *fakeAgent) {
	t.Helper()
	api, fa := newAPI(t), newAgent(t, "pod")
	fa.session = &agent.Session{}
	api.put(t, readyOn(newSandbox("s", "alice"), fa))
	p := newPair(t, 1)
	s, _, _ := newTLSStack(t, api, p)
	proto := "HTTP/1.1"
	if http2 {
		proto = "HTTP/2.0"
	}
	return overTLS{s, trusting(t, p, http2), proto}, fa
}

// R28: an agent that gives a body up while more of it is waited for, as a stalled one,
// is an answer with an end, though the client sends no more.
func TestUploadThatStallsIsAnsweredOverTLS(t *testing.T) {
	t.Parallel()
	for name, http2 := range map[string]bool{"HTTP/2": true, "HTTP/1.1": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, fa := newUploadTLS(t, http2)
			fa.upload = func(w http.ResponseWriter, r *http.Request) {
				if _, err := io.ReadFull(r.Body, make([]byte, 4)); err != nil {
					t.Error(err)
				}
				agentError(w, http.StatusRequestTimeout, "stalled", "nothing came")
			}
			body, sender := io.Pipe()
			defer sender.Close()
			go func() { _, _ = sender.Write([]byte("half")) }() // ends with what reads it
			status, answer := c.ask(t, http.MethodPost, "/sessions/s/files?name=f", body, nil)
			if status != http.StatusRequestTimeout || !strings.Contains(string(answer), `"code":"stalled"`) {
				t.Errorf("%d %s", status, answer)
			}
		})
	}
}

// counted is a body that tells once so much of it was sent.
type counted struct {
	left int
	sent chan<- struct{}
}

func (c *counted) Read(p []byte) (int, error) {
	if c.left > 0 && c.left <= len(p) {
		c.sent <- struct{}{}
	}
	c.left -= len(p)
	return len(p), nil
}

// Uploads that wait for their session leave the others on their connection, which may
// be a proxy's and of many callers, what they need to be received.
func TestUploadsThatWaitDontKeepOthersOnTheirConnection(t *testing.T) {
	t.Parallel()
	c, fa := newUploadTLS(t, true)
	fa.exec = func(w http.ResponseWriter, _ *http.Request, _ agent.ExecRequest) {
		agentJSON(w, agent.ExecResult{Stdout: "beside them"})
	}
	const uploads = 8
	sent, ended := make(chan struct{}, uploads), make(chan struct{}, uploads)
	ctx, end := context.WithCancel(t.Context())
	for range uploads {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/sessions/never-ready/files?name=f", &counted{200_000, sent})
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer alice")
		go func() {
			if resp, err := c.client.Do(r); err == nil {
				t.Errorf("an upload: %s", resp.Status)
				resp.Body.Close()
			}
			ended <- struct{}{}
		}()
	}
	for range uploads {
		<-sent
	}
	command := "true " + strings.Repeat("x", 100_000)
	if status, answer := c.ask(t, http.MethodPost, "/mcp", strings.NewReader(bashBody(eras[1], command)), toolHeaders(eras[1], "s")); status != http.StatusOK || !strings.Contains(string(answer), "beside them") {
		t.Errorf("a call beside: %d %.200s", status, answer)
	}
	end()
	for range uploads {
		<-ended
	}
}
