package client

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

func frame(kind byte, payload string) string {
	return string(kind) + string(binary.BigEndian.AppendUint32(nil, uint32(len(payload)))) + payload
}

func framed(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept") != wire.FramesType {
			w.WriteHeader(http.StatusNotAcceptable)
			return
		}
		w.Header().Set("Content-Type", wire.FramesType)
		_, _ = io.WriteString(w, body) // the client may have had enough
	}
}

// collect keeps what a sink is handed.
type collect struct{ out, err bytes.Buffer }

func (c *collect) sink(kind byte, data []byte) error {
	if kind == FrameStdout {
		c.out.Write(data)
	} else {
		c.err.Write(data)
	}
	return nil
}

func TestExecStream(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", wire.MaxFrame)
	client, pod := lying(t, Options{}, framed(frame(FrameStdout, "a")+frame(FrameStderr, "e")+frame(FrameStdout, big)+frame(wire.FrameResult, fmt.Sprintf(`{"exit_code":3,"stdout":"a","stdout_bytes":%d,"stderr_bytes":1}`, 1+len(big)))))
	var c collect
	r, err := client.ExecStream(t.Context(), pod, ExecRequest{Command: "true"}, 0, c.sink)
	if err != nil {
		t.Fatal(err)
	}
	if r.ExitCode != 3 || r.Stdout != "a" || c.out.String() != "a"+big || c.err.String() != "e" {
		t.Errorf("result %+v, %d bytes of stdout, stderr %q", r, c.out.Len(), &c.err)
	}
}

// What no honest agent streams is an error, and bounded.
func TestUnbelievableStreams(t *testing.T) {
	t.Parallel()
	result := frame(wire.FrameResult, `{"exit_code":0}`)
	length := func(kind byte, n uint32) string { return string(kind) + string(binary.BigEndian.AppendUint32(nil, n)) }
	for name, body := range map[string]string{
		"empty":                   "",
		"half a header":           "\x01\x00",
		"no result":               frame(FrameStdout, "a"),
		"cut output":              length(FrameStdout, 10) + "short",
		"cut result":              length(wire.FrameResult, 100) + `{"exit_code":0}`,
		"kind 0":                  frame(0, "a"),
		"kind 5":                  frame(5, "a"),
		"JSON instead":            `{"exit_code":0}`,
		"output of no bytes":      frame(FrameStdout, "") + result,
		"output over a frame":     length(FrameStderr, wire.MaxFrame+1) + strings.Repeat("a", wire.MaxFrame+1) + result,
		"huge length":             length(FrameStdout, 1<<32-1),
		"result over its bound":   length(wire.FrameResult, wire.MaxResult+1),
		"error over its bound":    length(wire.FrameError, maxErrorBody+1),
		"error after output":      frame(FrameStdout, "a") + frame(wire.FrameError, `{"error":{"code":"internal","message":"m"}}`),
		"something after it":      result + frame(FrameStdout, "a"),
		"two results":             result + result,
		"result is no JSON":       frame(wire.FrameResult, "x"),
		"exit code":               frame(wire.FrameResult, `{"exit_code":256}`),
		"stdout counted wrong":    frame(FrameStdout, "a") + frame(wire.FrameResult, `{"stdout_bytes":2}`),
		"stderr counted wrong":    frame(FrameStdout, "a") + frame(wire.FrameResult, `{"stdout_bytes":1,"stderr_bytes":1}`),
		"log with another's path": frame(wire.FrameResult, `{"log":{"stdout":{"id":"0123456789abcdef0123456789abcdef","path":"/etc/passwd"}}}`),
		"log path with a line":    frame(wire.FrameResult, `{"log":{"stdout":{"id":"0123456789abcdef0123456789abcdef","path":"a\nb"}}}`),
		"log without an id":       frame(wire.FrameResult, `{"log":{"stderr":{"path":"a"}}}`),
		"log of negative size":    frame(wire.FrameResult, `{"log":{"stderr":{"id":"0123456789abcdef0123456789abcdef","path":"a","size":-1}}}`),
		"log that lives too long": frame(wire.FrameResult, `{"log":{"stderr":{"id":"0123456789abcdef0123456789abcdef","path":"a","expires_in":3601}}}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, pod := lying(t, Options{}, framed(body))
			var c collect
			_, err := client.ExecStream(t.Context(), pod, ExecRequest{Command: "true"}, 0, c.sink)
			if !errors.Is(err, ErrBadAnswer) || errors.Is(err, ErrNotSent) {
				t.Errorf("want ErrBadAnswer, got %v", err)
			}
		})
	}
	client, pod := lying(t, Options{}, answer(200, `{"exit_code":0}`))
	if _, err := client.ExecStream(t.Context(), pod, ExecRequest{Command: "true"}, 0, (&collect{}).sink); !errors.Is(err, ErrBadAnswer) {
		t.Errorf("another type: want ErrBadAnswer, got %v", err)
	}
}

func TestStreamedRefusalIsTyped(t *testing.T) {
	t.Parallel()
	client, pod := lying(t, Options{}, framed(frame(wire.FrameError, `{"error":{"code":"no_shell","message":"m"}}`)))
	_, err := client.ExecStream(t.Context(), pod, ExecRequest{Command: "true"}, 0, (&collect{}).sink)
	if !errors.Is(err, ErrNoShell) || errors.Is(err, ErrBadAnswer) {
		t.Errorf("in a frame: want ErrNoShell, got %v", err)
	}
	client, pod = lying(t, Options{}, answer(429, `{"error":{"code":"queue_full","message":"m"}}`))
	_, err = client.ExecStream(t.Context(), pod, ExecRequest{Command: "true"}, 0, (&collect{}).sink)
	if !errors.Is(err, ErrQueueFull) {
		t.Errorf("as an answer: want ErrQueueFull, got %v", err)
	}
}

// endlessFrames writes output until the client is gone.
func endlessFrames(gone chan<- struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the server notices the end
		w.Header().Set("Content-Type", wire.FramesType)
		defer close(gone)
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, frame(FrameStdout, strings.Repeat("a", 1000))); err != nil {
				return
			}
		}
	}
}

func TestSinkEndsTheCall(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	client, pod := lying(t, Options{}, endlessFrames(gone))
	enough := errors.New("enough")
	_, err := client.ExecStream(t.Context(), pod, ExecRequest{Command: "true"}, 0, func(byte, []byte) error { return enough })
	if !errors.Is(err, enough) {
		t.Errorf("want the sink's error, got %v", err)
	}
	<-gone
}

func TestCancelEndsAStream(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	client, pod := lying(t, Options{}, endlessFrames(gone))
	ctx, cancel := context.WithCancel(t.Context())
	_, err := client.ExecStream(ctx, pod, ExecRequest{Command: "true"}, 0, func(byte, []byte) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("want Canceled, got %v", err)
	}
	<-gone
}

func TestStreamDeadlineIsAbsolute(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	client, pod := lying(t, Options{QueueWait: time.Millisecond, Grace: time.Millisecond}, endlessFrames(gone))
	_, err := client.ExecStream(t.Context(), pod, ExecRequest{Command: "true"}, time.Millisecond, (&collect{}).sink)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("want the deadline to end it, got %v", err)
	}
	<-gone
}

// Room is made for a large result alone, and not held by one that dribbles.
func TestRoomIsMadeForLargeStreamedResults(t *testing.T) {
	t.Parallel()
	full := errors.New("no room")
	options := Options{Admit: func(context.Context, int64) error { return full }}
	large := `{"stdout":"` + strings.Repeat("a", AdmitAbove) + `"}`
	client, pod := lying(t, options, framed(frame(wire.FrameResult, large)))
	if _, err := client.ExecStream(t.Context(), pod, ExecRequest{Command: "x"}, 0, (&collect{}).sink); !errors.Is(err, full) {
		t.Errorf("error %v, want that of Admit", err)
	}
	client, pod = lying(t, options, framed(frame(wire.FrameResult, `{"stdout":"a"}`)))
	if _, err := client.ExecStream(t.Context(), pod, ExecRequest{Command: "x"}, 0, (&collect{}).sink); err != nil {
		t.Errorf("small result: %v", err)
	}
	client, pod = lying(t, Options{Grace: 50 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", wire.FramesType)
		_, _ = io.WriteString(w, frame(wire.FrameResult, large)[:100])
		_ = http.NewResponseController(w).Flush() // fails only when the client is gone
		<-r.Context().Done()
	})
	if _, err := client.ExecStream(t.Context(), pod, ExecRequest{Command: "x"}, 0, (&collect{}).sink); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want DeadlineExceeded", err)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte(frame(FrameStdout, "a") + frame(wire.FrameResult, `{"stdout_bytes":1}`)))
	f.Add([]byte(frame(wire.FrameError, `{"error":{"code":"internal"}}`)))
	f.Fuzz(func(t *testing.T, body []byte) {
		var c collect
		s := stream{body: bytes.NewReader(body), sink: c.sink, admit: func(int64) error { return nil }}
		r, err := s.run()
		if (r == nil) == (err == nil) {
			t.Fatalf("result %v, error %v", r, err)
		}
		if r != nil && (int64(c.out.Len()) != r.StdoutBytes || int64(c.err.Len()) != r.StderrBytes) {
			t.Errorf("%d and %d bytes came, the result counts %d and %d", c.out.Len(), c.err.Len(), r.StdoutBytes, r.StderrBytes)
		}
	})
}
