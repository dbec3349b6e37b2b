package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/berth-dev/berth/sandbox-agent/filename"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// Upload streams body to a file of the workspace that is called name, or much
// like it, and returns what it is called. size is how long body is, and negative
// if that isn't known. It may take as long as body does: only an agent that takes
// nothing for Options.StallTimeout is given up.
//
// body is read once the agent has agreed to take it, and not at all when it
// refuses at once. A Read of it may still be under way when Upload returns: the
// agent may refuse a body that has come to a halt. An error matches ErrBody if
// body was the cause.
func (c *Client) Upload(ctx context.Context, pod Pod, name string, size int64, body io.Reader) (*File, error) {
	query := url.Values{wire.FileName: {name}}
	var f File
	sent, err := c.sendFile(ctx, pod, http.MethodPost, wire.FilesPath+"?"+query.Encode(), size, body, &f)
	if err != nil {
		return nil, err
	}
	if err := checkFile(&f, sent); err != nil {
		return nil, err
	}
	return &f, nil
}

// sendFile streams body, as Upload says, and reads the agent's answer. It returns
// how much was sent.
func (c *Client) sendFile(ctx context.Context, pod Pod, method, path string, size int64, body io.Reader, answer any) (int64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	taking := newTaken(body, c.options.StallTimeout, func() { cancel(context.DeadlineExceeded) })
	defer taking.stop()

	req, err := c.request(ctx, pod, method, path, nil, nil)
	if err != nil {
		return 0, notSent{err}
	}
	req.Header.Set("Content-Type", wire.FileType)
	req.ContentLength, req.Body = size, http.NoBody
	if size != 0 {
		req.ContentLength, req.Body = max(size, -1), io.NopCloser(taking)
		req.Header.Set("Expect", "100-continue")
	}
	resp, err := c.send(pod, req)
	if err != nil {
		if failed := taking.failure(); failed != nil {
			return 0, fmt.Errorf("%w: %w", ErrBody, failed)
		}
		return 0, errors.Join(err, context.Cause(ctx))
	}
	if err := decode(resp, maxSmallAnswer, answer); err != nil {
		return 0, errors.Join(err, context.Cause(ctx))
	}
	sent, whole := taking.sum()
	if size < 0 && !whole || size >= 0 && sent != size {
		return 0, badAnswer("a file before all of it was sent")
	}
	return sent, nil
}

// taken is a body that an agent takes piece by piece. While it waits for a piece,
// that is its source's time; else its agent's, which is bounded.
type taken struct {
	body  io.Reader
	limit time.Duration

	mu    sync.Mutex
	timer *time.Timer
	n     int64
	err   error // of body, its end too
	ended bool
}

func newTaken(body io.Reader, limit time.Duration, giveUp func()) *taken {
	return &taken{body: body, limit: limit, timer: time.AfterFunc(limit, giveUp)}
}

// Read implements io.Reader.
func (t *taken) Read(p []byte) (int, error) {
	if !t.begin() {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := t.body.Read(p)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n += int64(n)
	if err != nil {
		t.err = err
	}
	if !t.ended {
		t.timer.Reset(t.limit)
	}
	return n, err
}

func (t *taken) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer.Stop()
	return !t.ended
}

func (t *taken) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	t.timer.Stop()
}

func (t *taken) failure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if errors.Is(t.err, io.EOF) {
		return nil
	}
	return t.err
}

// sum is how much was read, and whether that was all.
func (t *taken) sum() (n int64, whole bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.n, errors.Is(t.err, io.EOF)
}

// checkFile refuses a file that no upload of so many bytes becomes.
func checkFile(f *File, size int64) error {
	switch {
	case f.Name == "" || len(f.Name) > filename.Max || f.Name != path.Base(f.Name) || !printable(f.Name):
		return badAnswer("file name is malformed")
	case len(f.Path) > wire.MaxPath || !path.IsAbs(f.Path) || path.Clean(f.Path) != f.Path || path.Base(f.Path) != f.Name || !printable(f.Path):
		return badAnswer("file path is malformed")
	case f.Size < 0 || f.Size != size:
		return badAnswer("file size is not what was sent")
	}
	return nil
}

// printable tells whether s is text without control and format characters.
func printable(s string) bool {
	for _, r := range s {
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			return false
		}
	}
	return utf8.ValidString(s)
}
