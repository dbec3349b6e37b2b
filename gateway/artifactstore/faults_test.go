package artifactstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-dev/berth/gateway/artifact"
)

// newFaulty is a store on a server that does what handle does.
func newFaulty(t *testing.T, handle http.HandlerFunc) *bench {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	c := Config{Name: "archive", Endpoint: s.URL, Insecure: true, Bucket: "bucket"}
	keyFiles(t, &c, "AKIATEST", "secret-of-the-test")
	b := newBenchOn(t, c, nil)
	b.limits.pause = time.Millisecond
	return b
}

var h1 = artifact.Handle{Key: demo, ID: strings.Repeat("0a", 16), Store: "archive", Expiry: epoch.Unix() + 60}

// A put that fails for the moment is sent again whole, from a file read anew.
func TestAPutIsRepeated(t *testing.T) {
	t.Parallel()
	data := pattern(100_000)
	for name, fail := range map[string]func(http.ResponseWriter, *http.Request){
		"503 before the body": func(w http.ResponseWriter, _ *http.Request) { refuse(w, 503, "SlowDown") },
		"503 after the body": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			refuse(w, 503, "SlowDown")
		},
		"a lost connection": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var got [][]byte
			var keys []string
			puts := 0
			b := newFaulty(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodPut {
					w.WriteHeader(http.StatusNoContent)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				keys = append(keys, r.URL.Path)
				if puts++; puts < attempts {
					fail(w, r)
					return
				}
				body, _ := io.ReadAll(r.Body)
				got = append(got, body)
			})
			opened := 0
			f := fileOf(data)
			open := f.Open
			f.Open = func(ctx context.Context) (io.ReadCloser, error) {
				opened++
				return open(ctx)
			}
			kept, err := b.stores.Put(t.Context(), "archive", f)
			if err != nil || opened != attempts || len(got) != 1 || !bytes.Equal(got[0], data) {
				t.Fatalf("%v, opened %d times, %d bodies", err, opened, len(got))
			}
			for _, key := range keys {
				if key != "/bucket/"+b.objectKey(kept.Handle) {
					t.Errorf("put at %s and %s", keys[0], key)
				}
			}
		})
	}
}

// Where the answer to a whole file is lost, the object may be there: it is deleted.
func TestALostAnswerLeavesNoObject(t *testing.T) {
	t.Parallel()
	var deleted atomic.Int64
	b := newFaulty(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			deleted.Add(1)
			w.WriteHeader(http.StatusNoContent)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler)
	})
	if _, err := b.stores.Put(t.Context(), "archive", fileOf([]byte("data"))); err == nil || deleted.Load() != attempts {
		t.Errorf("%v, deleted %d times", err, deleted.Load())
	}
}

// A caller that goes once all was sent leaves no object either: it is deleted after
// the store has answered, which may keep it until then.
func TestACallerThatGoesAtLastLeavesNoObject(t *testing.T) {
	t.Parallel()
	gone := errors.New("the caller has gone")
	var cancel context.CancelCauseFunc
	var deleted chan struct{}
	var kept atomic.Bool
	inBubble(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			kept.Store(false)
			w.WriteHeader(http.StatusNoContent)
			close(deleted)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		cancel(gone)
		select {
		case <-deleted:
		case <-time.After(time.Second): // a delete that doesn't wait has come by now
		}
		kept.Store(true)
		w.Header().Set("ETag", `"e"`)
	}, func(t *testing.T, b *bench) {
		deleted = make(chan struct{})
		var ctx context.Context
		ctx, cancel = context.WithCancelCause(t.Context())
		if _, err := b.stores.Put(ctx, "archive", fileOf([]byte("data"))); !errors.Is(err, gone) || kept.Load() {
			t.Errorf("%v, kept %v", err, kept.Load())
		}
		<-deleted
	})
}

// What the agent's side says of a file that can't be read is passed on as it is.
func TestAFileThatCantBeRead(t *testing.T) {
	t.Parallel()
	b := newFaulty(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		t.Errorf("a whole %s came", r.Method)
	})
	gone := errors.New("the agent is gone")
	f := fileOf(pattern(1000))
	f.Open = func(context.Context) (io.ReadCloser, error) { return nil, gone }
	if _, err := b.stores.Put(t.Context(), "archive", f); !errors.Is(err, gone) {
		t.Error(err)
	}
	b = newFaulty(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	f.Open = func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(&ends{data: pattern(999), end: func() error { return gone }}), nil
	}
	if _, err := b.stores.Put(t.Context(), "archive", f); !errors.Is(err, gone) || len(b.seen) != 0 {
		t.Errorf("%v, observed %q", err, b.seen)
	}
}

// answer writes what a store says of an object.
func answer(w http.ResponseWriter, f *File, size int) {
	for k, v := range f.metadata() {
		w.Header().Set("X-Amz-Meta-"+k, v)
	}
	w.Header().Set("Last-Modified", "Tue, 01 Dec 2026 12:00:00 GMT")
	w.Header().Set("Content-Length", fmt.Sprint(size))
}

func TestAReadThatFails(t *testing.T) {
	t.Parallel()
	data := pattern(1 << 20)
	f := fileOf(data)
	for name, tc := range map[string]struct {
		handle func(http.ResponseWriter, *http.Request)
		want   string
	}{
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			answer(w, f, len(data))
			_, _ = w.Write(data[:1000])
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, "cut the file off; try again"},
		"stalled body": {func(w http.ResponseWriter, r *http.Request) {
			answer(w, f, len(data))
			_, _ = w.Write(data[:1000])
			w.(http.Flusher).Flush()
			hang(r)
		}, "didn't go on for too long; try again"},
		"stalled header": {func(_ http.ResponseWriter, r *http.Request) { hang(r) }, "didn't go on for too long; try again"},
		"another part": {func(w http.ResponseWriter, _ *http.Request) {
			answer(w, f, 10)
			w.Header().Set("Content-Range", "bytes 5-14/1048576")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(data[5:15])
		}, "failed (another part of the object than was asked for)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, tc.handle, func(t *testing.T, b *bench) {
				_, _, err := b.read(alice, h1, artifact.Part{})
				if want := `artifact store "archive" ` + tc.want; err == nil || err.Error() != want {
					t.Errorf("%v, want %s", err, want)
				}
				b.silent()
			})
		})
	}
}
