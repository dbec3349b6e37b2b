package client

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// What a hostile agent sends to fill the gateway's memory is never unpacked, and read
// only as far as it may go: whatever was announced, and whatever else would come.
func TestFloods(t *testing.T) {
	t.Parallel()
	const huge = 10 << 30
	bomb := gzipped(t, 32<<20)
	small := gzipped(t, 10) // a result as any other, were it unpacked
	packed := func(w http.ResponseWriter, contentType string) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", contentType)
		w.Write(bomb) // whoever stops reading has seen enough
	}
	exec := func(c *Client, pod Pod) error {
		_, err := c.Exec(t.Context(), pod, ExecRequest{Command: "true"}, 0)
		return err
	}
	follow := func(c *Client, pod Pod) error {
		_, err := c.ExecStream(t.Context(), pod, ExecRequest{Command: "true"}, 0, func(byte, []byte) error { return nil })
		return err
	}
	for name, tc := range map[string]struct {
		ask   func(*Client, Pod) error
		serve http.HandlerFunc
		// most is how many bytes may have been taken off the agent, what lies in buffers
		// between included.
		most int64
	}{
		"a gzip bomb for a result": {exec, func(w http.ResponseWriter, _ *http.Request) { packed(w, "application/json") }, int64(len(bomb)) + 1<<20},
		"a packed result": {exec, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "application/json")
			w.Write(small)
		}, 1 << 20},
		"a gzip bomb for a stream": {follow, func(w http.ResponseWriter, _ *http.Request) { packed(w, wire.FramesType) }, int64(len(bomb)) + 1<<20},
		"10 GiB for a result, announced": {exec, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10737418240")
			flood(w, "application/json", `{"stdout":"`, huge)
		}, wire.MaxResult + 8<<20},
		"10 GiB for a result": {exec, func(w http.ResponseWriter, _ *http.Request) {
			flood(w, "application/json", `{"stdout":"`, huge)
		}, wire.MaxResult + 8<<20},
		"10 GiB for a result's frame": {follow, func(w http.ResponseWriter, _ *http.Request) {
			flood(w, wire.FramesType, string(rune(wire.FrameResult))+"\xff\xff\xff\xff", huge)
		}, 8 << 20},
		"10 GiB for a frame of output": {follow, func(w http.ResponseWriter, _ *http.Request) {
			flood(w, wire.FramesType, string(rune(FrameStdout))+"\xff\xff\xff\xff", huge)
		}, 8 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			taken := make(chan int64, 1)
			c, pod := lying(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
				counted := &counter{ResponseWriter: w}
				tc.serve(counted, r)
				taken <- counted.n
			})
			err := tc.ask(c, pod)
			if !errors.Is(err, ErrBadAnswer) || errors.Is(err, ErrNotSent) {
				t.Errorf("want ErrBadAnswer, got %v", err)
			}
			if n := <-taken; n > tc.most {
				t.Errorf("%d bytes were taken, want at most %d", n, tc.most)
			}
		})
	}
}

// 10 GiB of output, as it may be, pass through a buffer: nothing of them is kept.
func TestEndlessOutputIsNotKept(t *testing.T) {
	const frames = 10 << 10 // of 1 MiB each
	source := &repeated{unit: []byte(frame(FrameStdout, strings.Repeat("a", wire.MaxFrame))), left: frames}
	body := io.MultiReader(source, strings.NewReader(frame(wire.FrameResult, fmt.Sprintf(`{"exit_code":0,"stdout_bytes":%d}`, frames*wire.MaxFrame))))
	var came int64
	s := stream{body: body, admit: func(int64) error { return nil }, sink: func(_ byte, data []byte) error {
		came += int64(len(data))
		return nil
	}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	result, err := s.run()
	runtime.ReadMemStats(&after)
	if err != nil || result.StdoutBytes != 10<<30 || came != 10<<30 {
		t.Fatalf("%d bytes came, result %+v, error %v", came, result, err)
	}
	if made := after.TotalAlloc - before.TotalAlloc; made > 64<<20 {
		t.Errorf("%d bytes were allocated for %d of output", made, came)
	}
}

// repeated gives a unit again and again, without its bytes being copied more than once.
type repeated struct {
	unit     []byte
	at, left int
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.unit[r.at:])
	if r.at += n; r.at == len(r.unit) {
		r.at, r.left = 0, r.left-1
	}
	return n, nil
}

// gzipped is so many bytes of a result's output, packed.
func gzipped(t *testing.T, size int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, `{"stdout":"`+strings.Repeat("a", size)+`","exit_code":0}`); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// flood writes a beginning and then so many bytes, until nobody takes them.
func flood(w http.ResponseWriter, contentType, beginning string, size int64) {
	w.Header().Set("Content-Type", contentType)
	block := []byte(strings.Repeat("a", 1<<16))
	if _, err := io.WriteString(w, beginning); err != nil {
		return
	}
	for sent := int64(len(beginning)); sent < size; sent += int64(len(block)) {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

// counter counts what a handler could send.
type counter struct {
	http.ResponseWriter
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.n += int64(n)
	return n, err
}
