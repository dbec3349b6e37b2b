package artifactstore

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/berth-dev/berth/gateway/artifact"
)

// place puts an object at a key of the bucket, whatever it is.
func (b *bench) place(key string) {
	b.t.Helper()
	if _, err := b.admin.PutObject(b.t.Context(), b.bucket, key, strings.NewReader("x"), 1, "", "", minio.PutObjectOptions{}); err != nil {
		b.t.Fatal(err)
	}
}

// A sweep deletes what has expired by all replicas' clocks, at that second and not
// before, and nothing that the gateway didn't write.
func TestSweep(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) { c.Expiry = Duration(time.Minute) })
	past := "1000000000"
	foreign := []string{
		"berth/artifacts/" + past + "/sandboxes/demo/notes.txt", "berth/artifacts/" + past + "/sandboxes/demo/" + h1.ID + "/x",
		"berth/artifacts/" + past + "/sandboxes/" + h1.ID, "berth/artifacts/0999999999/sandboxes/demo/" + h1.ID,
		"berth/artifacts/" + past + "/Sandboxes/demo/" + h1.ID, "berth/artifacts/readme", "berth/" + past + "/sandboxes/demo/" + h1.ID,
		"artifacts/" + past + "/sandboxes/demo/" + h1.ID, "berth2/artifacts/" + past + "/sandboxes/demo/" + h1.ID,
	}
	for _, key := range foreign {
		b.place(key)
	}
	first := b.keep(fileOf([]byte("first")))
	b.clock.Advance(30 * time.Second)
	second := b.keep(fileOf([]byte("second")))
	sweep := func(want int) {
		t.Helper()
		if n, err := b.sweep(t.Context()); n != want || err != nil {
			t.Errorf("swept %d, %v; want %d", n, err, want)
		}
	}
	b.clock.Advance(29*time.Second + skew - 30*time.Second)
	if _, data, err := b.read(alice, second, artifact.Part{}); err != nil || string(data) != "second" {
		t.Errorf("the one that hasn't expired: %q, %v", data, err)
	}
	b.clock.Advance(30 * time.Second)
	sweep(0)
	b.clock.Advance(time.Second)
	sweep(1)
	sweep(0) // another replica finds nothing to do
	left := strings.Join(b.keys(), "\n")
	for _, key := range append(foreign, b.objectKey(second)) {
		if !strings.Contains(left, key) {
			t.Errorf("%s is gone", key)
		}
	}
	if strings.Contains(left, first.ID) {
		t.Error("the expired one is there")
	}
}

// One sweep deletes so many at most, and the next the rest.
func TestASweepIsBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for range 5 {
		b.keep(fileOf([]byte("data")))
	}
	b.clock.Advance(DefaultExpiry + skew)
	b.limits.sweep = 3
	for _, want := range []int{3, 2, 0} {
		if n, err := b.sweep(t.Context()); n != want || err != nil {
			t.Errorf("swept %d, %v; want %d", n, err, want)
		}
	}
}

// Uploads in parts that nobody finished are given up after a day, if they are the
// gateway's.
func TestASweepGivesUpAbandonedUploads(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.clock.Time = time.Now()
	for _, key := range []string{b.objectKey(h1), "berth/artifacts/other"} {
		if _, err := b.admin.NewMultipartUpload(t.Context(), b.bucket, key, minio.PutObjectOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		later time.Duration
		left  int
	}{{0, 2}, {abandoned - time.Minute, 2}, {2 * time.Minute, 1}} {
		b.clock.Advance(step.later)
		if _, err := b.sweep(t.Context()); err != nil || b.uploads() != step.left {
			t.Errorf("%d uploads are left, %v; want %d", b.uploads(), err, step.left)
		}
	}
}

// A sweep that is told to stop stops, and says nothing of it.
func TestASweepStops(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.keep(fileOf([]byte("data")))
	b.clock.Advance(DefaultExpiry + skew)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b.sweepOnce(ctx)
	if len(b.keys()) != 1 || b.swept != 0 || strings.Join(b.seen, ",") != "put" {
		t.Errorf("objects %q, swept %d, observed %q", b.keys(), b.swept, b.seen)
	}
	b.sweepOnce(t.Context())
	if len(b.keys()) != 0 || b.swept != 1 || strings.Join(b.seen, ",") != "put,sweep" {
		t.Errorf("objects %q, swept %d, observed %q", b.keys(), b.swept, b.seen)
	}
}

// Sweeps come apart, and end with their context.
func TestSweepsAreRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		last := time.Now()
		times := 0
		repeat(ctx, func(context.Context) {
			gap := time.Since(last)
			if last = time.Now(); gap > sweepEvery*3/2 || gap < time.Second || times > 0 && gap < sweepEvery/2 {
				t.Errorf("sweep %d came after %s", times, gap)
			}
			if times++; times == 20 {
				cancel()
			}
		})
		if times != 20 {
			t.Errorf("%d sweeps", times)
		}
	})
}

// Keys are read only in the form in which they are written.
func TestKeys(t *testing.T) {
	t.Parallel()
	s := &Store{name: "archive", root: "p/" + folder}
	if h, ok := s.parseKey(s.objectKey(h1)); !ok || h != h1 {
		t.Errorf("%s is %+v", s.objectKey(h1), h)
	}
	for _, key := range []string{"", "p/", "p/artifacts/", s.objectKey(h1) + "/", "/" + s.objectKey(h1), s.objectKey(h1)[1:], s.objectKey(h1) + "0"} {
		if h, ok := s.parseKey(key); ok {
			t.Errorf("%q is %+v", key, h)
		}
	}
}

// locking is a bucket of so many expired objects, of which those can't be deleted
// that locked names.
type locking struct {
	objects int
	locked  func(id int) bool
	uploads atomic.Int64

	mu      sync.Mutex
	deletes []int // what was asked
}

func (l *locking) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := func(id int) string { return fmt.Sprintf("artifacts/1000000000/sandboxes/demo/%032x", id) }
	switch {
	case r.Method == http.MethodDelete:
		var id int
		if _, err := fmt.Sscanf(path.Base(r.URL.Path), "%x", &id); err != nil {
			panic(err)
		}
		l.mu.Lock()
		l.deletes = append(l.deletes, id)
		l.mu.Unlock()
		if l.locked(id) {
			refuse(w, http.StatusForbidden, "AccessDenied")
			return
		}
		w.WriteHeader(http.StatusNoContent)
	case r.URL.Query().Has("uploads"):
		l.uploads.Add(1)
		fmt.Fprint(w, "<ListMultipartUploadsResult/>")
	default:
		fmt.Fprint(w, "<ListBucketResult>")
		for id := range l.objects {
			if key(id) > r.URL.Query().Get("start-after") {
				fmt.Fprintf(w, "<Contents><Key>%s</Key></Contents>", key(id))
			}
		}
		fmt.Fprint(w, "</ListBucketResult>")
	}
}

// What can't be deleted, such as a locked object, is told of and keeps no other
// from being deleted, nor uploads from being given up; a store that lets nothing be
// deleted isn't asked for ever.
func TestASweepGoesOnAfterWhatIsLocked(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		objects     int
		locked      func(id int) bool
		swept, asks int
	}{
		{50, func(id int) bool { return id < 20 }, 30, 50},
		{300, func(int) bool { return true }, 0, sweepFailures},
	} {
		l := &locking{objects: tc.objects, locked: tc.locked}
		b := newFaulty(t, l.ServeHTTP)
		swept, err := b.sweep(t.Context())
		if code, _ := code(err); swept != tc.swept || code != "AccessDenied" || l.uploads.Load() != 1 {
			t.Errorf("swept %d, %v, and asked %d times for uploads; want %d, AccessDenied, once", swept, err, l.uploads.Load(), tc.swept)
		}
		if n := len(l.deletes); n < tc.asks || n > tc.asks+sweepParallel {
			t.Errorf("%d deletes, want %d", n, tc.asks)
		}
	}
}

// More locked objects than a sweep tries are left out by the next, which comes to
// those after them; the one that has come to the end begins at the first again.
func TestManyLockedObjectsKeepNoOtherFromBeingSwept(t *testing.T) {
	t.Parallel()
	const locked, free, failures = 250, 10, 100
	l := &locking{objects: locked + free, locked: func(id int) bool { return id < locked }}
	b := newFaulty(t, l.ServeHTTP)
	b.limits.failures = failures
	total, begins := 0, []int{}
	for range 4 {
		asked := len(l.deletes)
		swept, err := b.sweep(t.Context())
		if code, _ := code(err); code != "AccessDenied" {
			t.Errorf("a sweep of locked objects: %v", err)
		}
		total += swept
		begins = append(begins, slices.Min(l.deletes[asked:]))
	}
	if total != free {
		t.Errorf("swept %d objects behind %d locked ones, want %d", total, locked, free)
	}
	if begins[0] != 0 || begins[1] < failures || begins[2] < begins[1]+failures || begins[3] != 0 {
		t.Errorf("four sweeps began at %d; want each after the one before, and the last at the first object", begins)
	}
}
