package client

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestUnbelievableResults: what no honest agent answers is an error, and
// bounded.
func TestUnbelievableResults(t *testing.T) {
	t.Parallel()
	endless := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, strings.Repeat(" ", 1<<16)); err != nil {
				return
			}
		}
	}
	for name, handle := range map[string]http.HandlerFunc{
		"not JSON":       answer(200, `<html>`),
		"exit code":      answer(200, `{"exit_code":256}`),
		"negative code":  answer(200, `{"exit_code":-1}`),
		"negative count": answer(200, `{"stdout_bytes":-1}`),
		"long notice":    answer(200, `{"notice":"`+strings.Repeat("x", 2000)+`"}`),
		"endless":        endless,
		"announced": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "99999999999")
			w.WriteHeader(200)
		},
		"other type": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{}`) },
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://example.com/", http.StatusFound)
		},
		"redirect 307": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/v1/session", http.StatusTemporaryRedirect)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, pod := lying(t, Options{}, handle)
			_, err := c.Exec(t.Context(), pod, ExecRequest{Command: "true"}, 0)
			if !errors.Is(err, ErrBadAnswer) || errors.Is(err, ErrNotSent) {
				t.Errorf("want ErrBadAnswer, got %v", err)
			}
		})
	}
}

func TestRefusalsAreTyped(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		status int
		body   string
		want   error
	}{
		{401, `{"error":{"code":"unauthorized","message":"m"}}`, ErrUnauthorized},
		{401, `of a stranger`, ErrUnauthorized},
		{409, `{"error":{"code":"session_required","message":"m"}}`, ErrSessionRequired},
		{409, `{"error":{"code":"session_bound","message":"m"}}`, ErrSessionBound},
		{410, ``, ErrGone},
		{429, `{"error":{"code":"queue_full","message":"m"}}`, ErrQueueFull},
		{503, `{"error":{"code":"no_shell","message":"m"}}`, ErrNoShell},
	} {
		c, pod := lying(t, Options{}, answer(x.status, x.body))
		_, err := c.Exec(t.Context(), pod, ExecRequest{Command: "true"}, 0)
		var refusal *Error
		if !errors.Is(err, x.want) || !errors.As(err, &refusal) || errors.Is(err, ErrNotSent) {
			t.Errorf("%d %s: want %v, got %v", x.status, x.body, x.want, err)
		}
	}
	c, pod := lying(t, Options{}, answer(500, `{"error":{"code":"x","message":"a\u0000\u001b[31m\n`+strings.Repeat("y", 5000)+`"}}`))
	_, err := c.Exec(t.Context(), pod, ExecRequest{Command: "true"}, 0)
	if text := err.Error(); len(text) > 1200 || strings.ContainsAny(text, "\x00\x1b\n") {
		t.Errorf("want the agent's words bounded and clean, got %q", text)
	}
}

// Room is made for large results alone, and before they are read.
func TestRoomIsMadeForLargeResults(t *testing.T) {
	t.Parallel()
	full := errors.New("no room")
	var asked atomic.Int64
	options := Options{Admit: func(_ context.Context, size int64) error { asked.Store(size); return full }}
	large := `{"stdout":"` + strings.Repeat("a", AdmitAbove) + `"}`
	c, pod := lying(t, options, answer(http.StatusOK, large))
	if _, err := c.Exec(t.Context(), pod, ExecRequest{Command: "x"}, 0); !errors.Is(err, full) || asked.Load() < AdmitAbove {
		t.Errorf("error %v, asked for %d bytes; want its error", err, asked.Load())
	}
	c, pod = lying(t, options, answer(http.StatusOK, `{"stdout":"a"}`))
	if _, err := c.Exec(t.Context(), pod, ExecRequest{Command: "x"}, 0); err != nil {
		t.Errorf("small result: %v", err)
	}
}

// A pod can't hold the room for its result by sending it for ever.
func TestDribbledResultIsGivenUp(t *testing.T) {
	t.Parallel()
	c, pod := lying(t, Options{Grace: 50 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "100000")
		_ = http.NewResponseController(w).Flush() // fails only when the client is gone
		<-r.Context().Done()
	})
	if _, err := c.Exec(t.Context(), pod, ExecRequest{Command: "x"}, 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want DeadlineExceeded", err)
	}
}

// stuck is a connection whose write is under way until it is released.
type stuck struct {
	net.Conn
	release chan int
}

func (s stuck) Write([]byte) (int, error) { return <-s.release, nil }

// Bytes of a write that has not returned may have left.
func TestWriteUnderWayCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := countingConn{Conn: stuck{release: make(chan int)}}
		go func() { _, _ = c.Write(make([]byte, 10)) }()
		synctest.Wait()
		if n := c.written.Load(); n == 0 {
			t.Error("want a write under way to count, got 0")
		}
		c.Conn.(stuck).release <- 0
		synctest.Wait()
		if n := c.written.Load(); n != 0 {
			t.Errorf("want nothing counted of a write of nothing, got %d", n)
		}
	})
}

func TestExecDeadlineIsAbsolute(t *testing.T) {
	t.Parallel()
	c, pod := lying(t, Options{QueueWait: time.Millisecond, Grace: time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the server notices the end
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	if _, err := c.Exec(t.Context(), pod, ExecRequest{Command: "true"}, time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("want the deadline to end it, got %v", err)
	}
}

func TestReadArtifactDoesNotBelieve(t *testing.T) {
	t.Parallel()
	const id = "0123456789abcdef0123456789abcdef"
	header := func(status int, pairs ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			h := w.Header()
			h.Set("ETag", `"x"`)
			h.Set("Content-Type", "text/plain")
			h.Set("Content-Disposition", "attachment; filename=a.txt")
			h.Set("Content-Length", "5")
			for i := 0; i < len(pairs); i += 2 {
				h.Set(pairs[i], pairs[i+1])
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "12345")
		}
	}
	for name, x := range map[string]struct {
		span   Span
		handle http.HandlerFunc
		ok     bool
	}{
		"whole":              {Span{}, header(200), true},
		"part":               {Span{Offset: 2, Length: 5}, header(206, "Content-Range", "bytes 2-6/10"), true},
		"longer than budget": {Span{}, header(200, "Content-Length", "101"), false},
		"part ignored":       {Span{Offset: 2}, header(200), false},
		"another part":       {Span{Offset: 2}, header(206, "Content-Range", "bytes 3-7/10"), false},
		"more than asked":    {Span{Offset: 2, Length: 4}, header(206, "Content-Range", "bytes 2-6/10"), false},
		"less than asked":    {Span{Offset: 2, Length: 6}, header(206, "Content-Range", "bytes 2-6/10"), false},
		"less than all":      {Span{}, header(206, "Content-Range", "bytes 0-4/10"), false},
		"all that is left":   {Span{Offset: 5, Length: 9}, header(206, "Content-Range", "bytes 5-9/10"), true},
		"impossible part":    {Span{Offset: 2}, header(206, "Content-Range", "bytes 2-6/5"), false},
		"malformed part":     {Span{Offset: 2}, header(206, "Content-Range", "2-6"), false},
		"weak ETag":          {Span{}, header(200, "ETag", `W/"x"`), false},
		"no ETag":            {Span{}, header(200, "ETag", ""), false},
		"open ETag":          {Span{}, header(200, "ETag", `"x`), false},
		"space in an ETag":   {Span{}, header(200, "ETag", `"x y"`), false},
		"longest ETag":       {Span{}, header(200, "ETag", `"`+strings.Repeat("x", 126)+`"`), true},
		"longer ETag":        {Span{}, header(200, "ETag", `"`+strings.Repeat("x", 127)+`"`), false},
		"bad type":           {Span{}, header(200, "Content-Type", "<script>"), false},
		"path as a name":     {Span{}, header(200, "Content-Disposition", `attachment; filename="../a"`), false},
		"no name":            {Span{}, header(200, "Content-Disposition", "attachment"), false},
	} {
		c, pod := lying(t, Options{}, x.handle)
		r, err := c.ReadArtifact(t.Context(), pod, id, x.span, 100)
		if (err == nil) != x.ok {
			t.Errorf("%s: want accepted %v, got %v", name, x.ok, err)
		}
		if r != nil {
			if data, err := io.ReadAll(r.Body); err != nil || string(data) != "12345" {
				t.Errorf("%s: %q, %v", name, data, err)
			}
			if strings.Contains(r.Name, "/") {
				t.Errorf("%s: name %q", name, r.Name)
			}
			r.Body.Close()
		}
	}
	c, pod := lying(t, Options{}, header(200, "Content-Length", "0"))
	if _, err := c.ReadArtifact(t.Context(), pod, id, Span{Offset: 1}, 100); !errors.Is(err, ErrRange) {
		t.Errorf("a part of nothing: %v, want ErrRange", err)
	}
	c, pod = lying(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		header(200, "Content-Length", "9")(w, r) // and ends after 5
	})
	r, err := c.ReadArtifact(t.Context(), pod, id, Span{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if _, err := io.ReadAll(r.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("want an early end to be an error, got %v", err)
	}
	for _, bad := range []string{"", "x", strings.Repeat("A", 32), id + "/.."} {
		if _, err := c.ReadArtifact(t.Context(), pod, bad, Span{}, 100); !errors.Is(err, ErrNotFound) {
			t.Errorf("id %q: want ErrNotFound, got %v", bad, err)
		}
	}
}

func FuzzContentRange(f *testing.F) {
	f.Add("bytes 0-4/10", int64(5))
	f.Fuzz(func(t *testing.T, s string, length int64) {
		r := &Reading{Length: length}
		if r.parseRange(s) == nil && (r.Offset < 0 || r.Offset+r.Length > r.Size) {
			t.Errorf("%q: offset %d, length %d, size %d", s, r.Offset, r.Length, r.Size)
		}
	})
}
