package artifactstore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/berth-dev/berth/gateway/artifact"
)

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
