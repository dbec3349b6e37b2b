package main

import (
	"bytes"
	"crypto/sha256"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// sums are the SHA-256 of what a sink was handed.
type sums struct {
	kinds  map[byte]io.Writer
	counts map[byte]int64
}

func (s *sums) sink(kind byte, data []byte) error {
	s.counts[kind] += int64(len(data))
	_, err := s.kinds[kind].Write(data)
	return err
}

func TestFramesAreExact(t *testing.T) {
	t.Parallel()
	const size = 20_000_000 // many times what is buffered anywhere
	for name, o := range map[string]agentOptions{"bash": {}, "sh": {environ: plainSh}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := startAgent(t, o)
			data := noise(size)
			a.write(t, "data", data)
			out, err := sha256.New(), sha256.New()
			s := sums{map[byte]io.Writer{client.FrameStdout: out, client.FrameStderr: err}, map[byte]int64{}}
			r, fault := a.client.ExecStream(t.Context(), a.pod, client.ExecRequest{Command: "cat data & cat data >&2; wait"}, time.Minute, s.sink)
			if fault != nil {
				t.Fatal(fault)
			}
			want := sha256.Sum256(data)
			if !bytes.Equal(out.Sum(nil), want[:]) || !bytes.Equal(err.Sum(nil), want[:]) || r.StdoutBytes != size || r.StderrBytes != size {
				t.Errorf("%v bytes came, of %d and %d", s.counts, r.StdoutBytes, r.StderrBytes)
			}
			for _, l := range []*client.LogFile{r.Log.Stdout, r.Log.Stderr} {
				log, err := os.ReadFile(filepath.Join(a.workspace, l.Path))
				if err != nil || sha256.Sum256(log) != want {
					t.Errorf("log of %d bytes: %v", len(log), err)
				}
			}
		})
	}
}

// collected is what a sink was handed, and a channel that tells of it.
type collected struct {
	mu   sync.Mutex
	data map[byte]string
	news chan struct{}
}

func newCollected() *collected {
	return &collected{data: map[byte]string{}, news: make(chan struct{}, 1)}
}

func (c *collected) sink(kind byte, data []byte) error {
	c.mu.Lock()
	c.data[kind] += string(data)
	c.mu.Unlock()
	select {
	case c.news <- struct{}{}:
	default:
	}
	return nil
}

func (c *collected) get(kind byte) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.data[kind]
}

func TestFramesComeAsOutputHappens(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	a.output(t, "mkfifo go")
	c := newCollected()
	result := make(chan *client.ExecResult, 1)
	go func() {
		r, err := a.client.ExecStream(t.Context(), a.pod, client.ExecRequest{Command: `printf first; printf err >&2; read x <go; printf second; exit 3`}, 0, c.sink)
		if err != nil {
			t.Error(err)
		}
		result <- r
	}()
	for c.get(client.FrameStdout) != "first" || c.get(client.FrameStderr) != "err" {
		select {
		case <-c.news:
		case <-time.After(10 * time.Second):
			t.Fatalf("want output while the command runs, got %q", c.data)
		}
	}
	a.fifo(t, "go", true)
	r := <-result
	if r == nil || r.ExitCode != 3 || r.Stdout != "firstsecond" || r.Stderr != "err" || !strings.Contains(r.Notice, "as it was before this command") {
		t.Errorf("result %+v", r)
	}
	if diff := cmp.Diff(map[byte]string{client.FrameStdout: "firstsecond", client.FrameStderr: "err"}, c.data); diff != "" {
		t.Errorf("frames (-want +got):\n%s", diff)
	}
}

// Frames and result agree whatever the command is and however it ends.
func TestFramesAgreeWithTheResult(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	for _, x := range []client.ExecRequest{
		{Command: "true"},
		{Command: `printf 'a\n'; printf '\0b' >&2`},
		{Command: "sleep 0.01; printf tail"},
		{Command: "printf head; sleep 9", Timeout: 0.2},
		{Command: "printf x; kill -9 $$"},
		{Command: "cat", Stdin: strings.Repeat("in", 50_000)},
		{Command: "echo 'abc"},
		{Command: "exec 1>&-; echo gone"},
	} {
		c := newCollected()
		r, err := a.client.ExecStream(t.Context(), a.pod, x, 0, c.sink)
		if err != nil {
			t.Fatalf("%q: %v", x.Command, err)
		}
		if c.data[client.FrameStdout] != r.Stdout || c.data[client.FrameStderr] != r.Stderr {
			t.Errorf("%q: frames %q, result %+v", x.Command, c.data, r)
		}
	}
	if got := a.output(t, "echo next"); got != "next\n" {
		t.Errorf("the next command: %q", got)
	}
}

func TestCancelledWhileQueuedIsAResultInFrames(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	release, held := a.hold(t, "")
	queued := make(chan *client.ExecResult, 1)
	go func() {
		r, err := a.client.ExecStream(t.Context(), a.pod, client.ExecRequest{Command: "touch ran", ID: "queued"}, 0, newCollected().sink)
		if err != nil {
			t.Error(err)
		}
		queued <- r
	}()
	for a.client.CancelExec(t.Context(), a.pod, "queued") != nil {
		if t.Context().Err() != nil {
			return
		}
	}
	if r := <-queued; r == nil || r.ExitCode != 137 || !strings.Contains(r.Notice, "nothing ran") {
		t.Errorf("want a cancelled result, got %+v", r)
	}
	release()
	<-held
}
