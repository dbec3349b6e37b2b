package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// TestUnbelievableFiles: what no upload becomes is an error.
func TestUnbelievableFiles(t *testing.T) {
	t.Parallel()
	const size = 4
	for name, c := range map[string]struct {
		body string
		good bool
	}{
		"good":              {`{"path":"/workspace/uploads/a.txt","name":"a.txt","size":4}`, true},
		"another size":      {`{"path":"/workspace/uploads/a.txt","name":"a.txt","size":5}`, false},
		"no name":           {`{"path":"/workspace/uploads/a.txt","size":4}`, false},
		"no path":           {`{"name":"a.txt","size":4}`, false},
		"relative path":     {`{"path":"uploads/a.txt","name":"a.txt","size":4}`, false},
		"another path":      {`{"path":"/workspace/uploads/b.txt","name":"a.txt","size":4}`, false},
		"path upwards":      {`{"path":"/workspace/../a.txt","name":"a.txt","size":4}`, false},
		"name with slash":   {`{"path":"/a/b","name":"a/b","size":4}`, false},
		"name upwards":      {`{"path":"/..","name":"..","size":4}`, false},
		"newline":           {`{"path":"/a\nb","name":"a\nb","size":4}`, false},
		"override":          {`{"path":"/a\u202eb","name":"a\u202eb","size":4}`, false},
		"control in path":   {`{"path":"/\u001b/a","name":"a","size":4}`, false},
		"long name":         {`{"path":"/` + strings.Repeat("a", 256) + `","name":"` + strings.Repeat("a", 256) + `","size":4}`, false},
		"long path":         {`{"path":"/` + strings.Repeat("a", 4096) + `/a","name":"a","size":4}`, false},
		"no JSON":           {`path`, false},
		"an endless answer": {strings.Repeat(" ", maxSmallAnswer+1), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c2, pod := lying(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
				if got, err := io.ReadAll(r.Body); err != nil || string(got) != "data" {
					t.Errorf("the agent got %q, %v", got, err)
				}
				answer(http.StatusCreated, c.body)(w, r)
			})
			f, err := c2.Upload(t.Context(), pod, "a.txt", size, strings.NewReader("data"))
			if c.good && (err != nil || f.Name != "a.txt") || !c.good && !errors.Is(err, ErrBadAnswer) {
				t.Errorf("got %+v, %v", f, err)
			}
		})
	}
}

func TestUploadSaysWhatItSends(t *testing.T) {
	t.Parallel()
	const name = "../ü &?#%\n.txt"
	for size, want := range map[int64]int64{4: 4, -1: -1, -7: -1, 0: 0} {
		c, pod := lying(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/files" || r.URL.Query().Get("name") != name || len(r.URL.Query()) != 1 || r.ContentLength != want || r.Header.Get("Content-Type") != "application/octet-stream" {
				t.Errorf("%s %d %v", r.URL, r.ContentLength, r.Header)
			}
			n, err := io.Copy(io.Discard, r.Body)
			if err != nil {
				t.Error(err)
			}
			answer(http.StatusCreated, fmt.Sprintf(`{"path":"/x","name":"x","size":%d}`, n))(w, r)
		})
		body := strings.NewReader("data")
		if size == 0 {
			body = strings.NewReader("")
		}
		if _, err := c.Upload(t.Context(), pod, name, size, body); err != nil {
			t.Errorf("size %d: %v", size, err)
		}
	}
}

func TestUploadIsRefusedBeforeItsBodyIsRead(t *testing.T) {
	t.Parallel()
	c, pod := lying(t, Options{}, answer(http.StatusConflict, `{"error":{"code":"session_required","message":"bind first"}}`))
	_, err := c.Upload(t.Context(), pod, "a", 4, iotest.ErrReader(errors.New("the body was read")))
	if !errors.Is(err, ErrSessionRequired) {
		t.Errorf("got %v, want ErrSessionRequired", err)
	}
}

func TestUploadOfABrokenBody(t *testing.T) {
	t.Parallel()
	broken := errors.New("reset")
	c, pod := lying(t, Options{}, func(_ http.ResponseWriter, r *http.Request) {
		if n, err := io.Copy(io.Discard, r.Body); err == nil {
			t.Errorf("the agent took %d bytes for the whole body", n)
		}
	})
	for _, size := range []int64{100, -1} {
		body := io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken))
		if _, err := c.Upload(t.Context(), pod, "a", size, body); !errors.Is(err, ErrBody) || !errors.Is(err, broken) {
			t.Errorf("size %d: %v, want ErrBody", size, err)
		}
	}
}

// stuckBody waits for its end.
type stuckBody struct{ end <-chan struct{} }

func (s stuckBody) Read(p []byte) (int, error) {
	<-s.end
	return 0, io.EOF
}

func TestUploadOfABodyInAHaltEndsWithTheAgentsAnswer(t *testing.T) {
	t.Parallel()
	c, pod := lying(t, Options{StallTimeout: time.Hour}, func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadFull(r.Body, make([]byte, 4)); err != nil {
			t.Error(err)
		}
		w.Header().Set("Connection", "close")
		answer(http.StatusRequestTimeout, `{"error":{"code":"stalled","message":"nothing came"}}`)(w, r)
	})
	end := make(chan struct{})
	defer close(end)
	_, err := c.Upload(t.Context(), pod, "a", 100, io.MultiReader(strings.NewReader("data"), stuckBody{end}))
	if !errors.Is(err, ErrStalled) {
		t.Errorf("got %v, want ErrStalled", err)
	}
}

func TestAgentThatTakesNothingIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, handle := range map[string]http.HandlerFunc{
		"never agrees": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"reads no further": func(_ http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadFull(r.Body, make([]byte, 4)); err == nil {
				<-r.Context().Done()
			}
		},
		"never answers": func(_ http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, io.LimitReader(r.Body, 1<<20)); err == nil {
				<-r.Context().Done()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, pod := lying(t, Options{Timeout: time.Hour, StallTimeout: 100 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
				ctx, cancel := context.WithCancel(r.Context())
				defer cancel()
				context.AfterFunc(t.Context(), cancel)
				handle(w, r.WithContext(ctx))
			})
			body := io.Reader(strings.NewReader(strings.Repeat("x", 64<<20)))
			size := int64(64 << 20)
			if name == "never answers" {
				size, body = 1<<20, strings.NewReader(strings.Repeat("x", 1<<20))
			}
			_, err := c.Upload(t.Context(), pod, "a", size, body)
			if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrBody) {
				t.Errorf("got %v, want a deadline's end", err)
			}
		})
	}
}

// A body that is slower than the agent's time is its caller's affair.
func TestSlowBodyIsNotTheAgents(t *testing.T) {
	t.Parallel()
	c, pod := lying(t, Options{StallTimeout: 50 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			t.Error(err)
		}
		answer(http.StatusCreated, fmt.Sprintf(`{"path":"/x","name":"x","size":%d}`, n))(w, r)
	})
	slow := &slowBody{pieces: 4, wait: 100 * time.Millisecond}
	if f, err := c.Upload(t.Context(), pod, "a", -1, slow); err != nil || f.Size != 4 {
		t.Errorf("got %+v, %v", f, err)
	}
}

type slowBody struct {
	pieces int
	wait   time.Duration
}

func (s *slowBody) Read(p []byte) (int, error) {
	if s.pieces == 0 {
		return 0, io.EOF
	}
	<-time.After(s.wait)
	s.pieces--
	return copy(p, "x"), nil
}
