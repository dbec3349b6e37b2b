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

	"github.com/minio/minio-go/v7"

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

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>key artifacts/1/demo/x of AKIATEST</Message><RequestId>R1</RequestId></Error>", code)
}

var h1 = artifact.Handle{Key: demo, ID: strings.Repeat("0a", 16), Store: "archive", Expiry: epoch.Unix() + 60}

// What a store's refusals are for a caller, and how often each is asked again.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status int
		code   string
		text   string
		asked  int64
	}{
		{403, "InvalidAccessKeyId", "refused the gateway (InvalidAccessKeyId): whoever runs the gateway must see to its credentials and rights", 1},
		{403, "SignatureDoesNotMatch", "refused the gateway (SignatureDoesNotMatch): whoever runs the gateway must see to its credentials and rights", 1},
		{403, "AccessDenied", "refused the gateway (AccessDenied): whoever runs the gateway must see to its credentials and rights", 1},
		{404, "NoSuchBucket", "has no bucket: whoever runs the gateway must make it", 1},
		{400, "InvalidRequest", "refused what it was asked (InvalidRequest)", 1},
		{301, "PermanentRedirect", "refused what it was asked (PermanentRedirect)", 1},
		{500, "InternalError", "failed (status 500); try again", attempts},
		{503, "SlowDown", "is overloaded; try again", attempts},
		{503, "ServiceUnavailable", "is overloaded; try again", attempts},
		{429, "TooManyRequests", "is overloaded; try again", attempts},
		{507, "XMinioStorageFull", "is full", attempts},
	} {
		t.Run(tc.code, func(t *testing.T) {
			t.Parallel()
			var puts, gets atomic.Int64
			b := newFaulty(t, func(w http.ResponseWriter, r *http.Request) {
				switch r.Method {
				case http.MethodPut:
					puts.Add(1)
				case http.MethodGet:
					gets.Add(1)
				}
				refuse(w, tc.status, tc.code)
			})
			want := `artifact store "archive" ` + tc.text
			_, err := b.stores.Put(t.Context(), "archive", fileOf([]byte("data")))
			if err == nil || err.Error() != want || puts.Load() != tc.asked {
				t.Errorf("put: %v, asked %d times; want %s, %d", err, puts.Load(), want, tc.asked)
			}
			_, _, err = b.read(alice, h1, artifact.Part{})
			if err == nil || err.Error() != want || gets.Load() > attempts {
				t.Errorf("get: %v, asked %d times; want %s", err, gets.Load(), want)
			}
			if got := strings.Join(b.seen, ","); got != "put failed,get failed" {
				t.Errorf("observed %s", got)
			}
			if !strings.Contains(b.logged.String(), tc.code) || !strings.Contains(b.logged.String(), "request R1") {
				t.Errorf("the log doesn't say why:\n%s", b.logged)
			}
			b.silent()
		})
	}
}

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

// stalls is a handler that reads so much of a body, and then does nothing.
func stalls(n int64) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		_, _ = io.CopyN(io.Discard, r.Body, n)
		hang(r)
	}
}

// A store that doesn't go on is given up, whether it takes nothing, reads no
// further or doesn't answer.
func TestAStalledPutEnds(t *testing.T) {
	t.Parallel()
	data := pattern(4 << 20)
	for name, tc := range map[string]struct {
		size int
		read int64
	}{
		"at once":   {4 << 20, 0},
		"midway":    {4 << 20, 1 << 20},
		"no answer": {1000, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, stalls(tc.read), func(t *testing.T, b *bench) {
				began := time.Now()
				_, err := b.stores.Put(t.Context(), "archive", fileOf(data[:tc.size]))
				if err == nil || err.Error() != `artifact store "archive" didn't go on for too long; try again` {
					t.Error(err)
				}
				if took := time.Since(began); took < attempts*stallTimeout || took > putTimeout {
					t.Errorf("given up after %s", took)
				}
			})
		})
	}
}

// One that always goes on, but too slowly, is given up as a whole.
func TestASlowPutEnds(t *testing.T) {
	t.Parallel()
	inBubble(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Method == http.MethodPut {
			<-time.After(stallTimeout / 2)
			if _, err := io.CopyN(io.Discard, r.Body, 64<<10); err != nil {
				return
			}
		}
		w.WriteHeader(http.StatusNoContent)
	}, func(t *testing.T, b *bench) {
		began := time.Now()
		_, err := b.stores.Put(t.Context(), "archive", fileOf(pattern(8<<20)))
		if err == nil || err.Error() != `artifact store "archive" took too long; try again` {
			t.Error(err)
		}
		if took := time.Since(began); took != putTimeout {
			t.Errorf("given up after %s", took)
		}
	})
}

// An agent that gives no more of the file is not the store's fault.
func TestAStalledAgentEndsAPut(t *testing.T) {
	t.Parallel()
	data := pattern(4 << 20)
	inBubble(t, stalls(1<<30), func(t *testing.T, b *bench) {
		f := fileOf(data)
		f.Open = func(ctx context.Context) (io.ReadCloser, error) {
			return io.NopCloser(&ends{data: data[:1<<20], end: func() error {
				<-ctx.Done()
				return ctx.Err()
			}}), nil
		}
		if _, err := b.stores.Put(t.Context(), "archive", f); !errors.Is(err, errAgentStalled) || len(b.seen) != 0 {
			t.Errorf("%v, observed %q", err, b.seen)
		}
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

// A reader that takes its time is not given up.
func TestASlowReaderIsNoStall(t *testing.T) {
	t.Parallel()
	data := pattern(8 << 20)
	b := newFaulty(t, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, fileOf(data), len(data))
		_, _ = w.Write(data)
	})
	r, err := Source{Stores: b.stores}.Open(t.Context(), alice, h1, artifact.Part{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	first := make([]byte, 10)
	if _, err := io.ReadFull(r.Body, first); err != nil {
		t.Fatal(err)
	}
	if r.Body.(*objectBody).watch.timer.Stop() {
		t.Error("the time runs while nobody reads")
	}
	rest, err := io.ReadAll(r.Body)
	if err != nil || !bytes.Equal(append(first, rest...), data) {
		t.Errorf("%d bytes, %v", len(rest), err)
	}
}

func TestAStoreThatIsNotThere(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(nil)
	s.Close()
	c := Config{Name: "archive", Endpoint: s.URL, Insecure: true, Bucket: "bucket"}
	keyFiles(t, &c, "AKIATEST", "secret-of-the-test")
	b := newBenchOn(t, c, nil)
	b.limits.pause = time.Millisecond
	want := `artifact store "archive" can't be reached; try again`
	if _, err := b.stores.Put(t.Context(), "archive", fileOf([]byte("data"))); err == nil || err.Error() != want {
		t.Errorf("put: %v", err)
	}
	if _, _, err := b.read(alice, h1, artifact.Part{}); err == nil || err.Error() != want {
		t.Errorf("get: %v", err)
	}
	b.silent()
}

// On the real server: wrong keys and a bucket that isn't there.
func TestRealRefusals(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	write(t, b.config.SecretKeyFile, "another-secret")
	_, err := b.stores.Put(t.Context(), "archive", fileOf([]byte("data")))
	if want := "refused the gateway (SignatureDoesNotMatch)"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("put with a wrong secret: %v, want %s", err, want)
	}
	// A rotated secret is used by the next request.
	write(t, b.config.SecretKeyFile, server.SecretKey)
	h := b.keep(fileOf([]byte("data")))
	write(t, b.config.AccessKeyFile, "AKIAOTHER")
	if _, _, err := b.read(alice, h, artifact.Part{}); err == nil || !strings.Contains(err.Error(), "refused the gateway (InvalidAccessKeyId)") {
		t.Errorf("get with a wrong key: %v", err)
	}
	write(t, b.config.AccessKeyFile, "")
	if _, _, err := b.read(alice, h, artifact.Part{}); err == nil || !strings.Contains(err.Error(), "has no usable credentials") {
		t.Errorf("get without a key: %v", err)
	}
	write(t, b.config.AccessKeyFile, server.AccessKey)
	if err := b.admin.RemoveObject(t.Context(), b.bucket, b.objectKey(h), minio.RemoveObjectOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := b.admin.RemoveBucket(t.Context(), b.bucket); err != nil {
		t.Fatal(err)
	}
	if _, err := b.stores.Put(t.Context(), "archive", fileOf([]byte("data"))); err == nil || !strings.Contains(err.Error(), "has no bucket") {
		t.Errorf("put without a bucket: %v", err)
	}
	if _, _, err := b.read(alice, h, artifact.Part{}); err == nil || !strings.Contains(err.Error(), "has no bucket") {
		t.Errorf("get without a bucket: %v", err)
	}
	if _, err := b.sweep(t.Context()); err == nil {
		t.Error("a bucket that isn't there was swept")
	}
	b.silent()
}
