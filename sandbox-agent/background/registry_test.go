package background

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/shell"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// fixture returns a registry whose processes don't start: jobs do for most.
func fixture(t testing.TB) *Registry {
	t.Helper()
	r := New(Config{
		Launch: func(ctx context.Context, _ shell.Command, _ func(shell.Launch) error) error {
			<-ctx.Done()
			return ctx.Err()
		},
		Settled: func(context.Context) error { return nil },
		Spools:  []string{t.TempDir()},
	})
	t.Cleanup(r.Close)
	return r
}

// leave leaves a job behind and returns its id.
func leave(t testing.TB, r *Registry, command string) (string, io.WriteCloser) {
	t.Helper()
	w := r.Leftover(command)
	if w == nil {
		t.Fatal("no room for a job")
	}
	return r.entries[len(r.entries)-1].id, w
}

func write(t testing.TB, w io.Writer, s string) {
	t.Helper()
	if _, err := io.WriteString(w, s); err != nil {
		t.Fatal(err)
	}
}

// TestWait: a long poll ends with output, with the end, or with its time, and
// at none of them a moment later.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := fixture(t)
		id, w := leave(t, r, "job")
		write(t, w, "ab")
		var began time.Time
		for _, c := range []struct {
			name   string
			offset int64
			after  time.Duration // when something is written
			write  string
			want   string
			waits  time.Duration
		}{
			{name: "there already", offset: 0, want: "ab"},
			{name: "comes", offset: 2, after: 7 * time.Second, write: "c", want: "c", waits: 7 * time.Second},
			{name: "from the end", offset: -1, want: "c"},
			{name: "doesn't come", offset: 3, waits: 20 * time.Second},
			{name: "not so far", offset: 9, after: time.Second, write: "d", waits: 20 * time.Second},
			{name: "part of a character", offset: 4, after: time.Second, write: "\xe2", waits: 20 * time.Second},
			{name: "all of it", offset: 4, after: time.Second, write: "\x82\xac", want: "€", waits: time.Second},
		} {
			began = time.Now()
			if c.write != "" {
				time.AfterFunc(c.after, func() { write(t, w, c.write) })
			}
			o, err := r.Output(t.Context(), id, Query{Offset: c.offset, Limit: 100, Wait: 20 * time.Second})
			if waited := time.Since(began); err != nil || o.Output != c.want || waited != c.waits || !o.Running {
				t.Errorf("%s: %+v, %v after %v", c.name, o, err, waited)
			}
		}
		began = time.Now()
		time.AfterFunc(3*time.Second, func() { _ = w.Close() })
		o, err := r.Output(t.Context(), id, Query{Offset: 7, Limit: 100, Wait: 20 * time.Second})
		if waited := time.Since(began); err != nil || o.Running || waited != 3*time.Second {
			t.Errorf("the end: %+v, %v after %v", o, err, waited)
		}
		began = time.Now()
		if o, err = r.Output(t.Context(), id, Query{Offset: 7, Limit: 100, Wait: 20 * time.Second}); err != nil || o.Running || time.Since(began) != 0 {
			t.Errorf("after the end: %+v, %v", o, err)
		}
	})
}

func TestNobodyWaitsForAnAgentThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := fixture(t)
		id, _ := leave(t, r, "job")
		began := time.Now()
		time.AfterFunc(time.Second, func() { r.End(t.Context()) })
		o, err := r.Output(t.Context(), id, Query{Limit: 1, Wait: time.Minute})
		if err != nil || !o.Running || time.Since(began) != time.Second {
			t.Errorf("%+v, %v after %v", o, err, time.Since(began))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.Output(ctx, "other", Query{Limit: 1}); !errors.Is(err, ErrNotFound) {
			t.Errorf("got %v", err)
		}
		if r.Leftover("late") != nil {
			t.Error("want no job any more")
		}
		if _, _, err := r.Start(t.Context(), wire.ProcessRequest{Command: "late"}); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

func TestJobsAreBounded(t *testing.T) {
	r := fixture(t)
	var all []io.WriteCloser
	for range wire.MaxProcesses {
		_, w := leave(t, r, "sleep 1000 &")
		write(t, w, "x")
		all = append(all, w)
	}
	if r.Leftover("one more") != nil {
		t.Error("want no room while all run")
	}
	if running, ended := r.Activity(); running != wire.MaxProcesses || !ended.IsZero() {
		t.Errorf("got %d, %v", running, ended)
	}
	first := r.entries[5].id
	if err := all[5].Close(); err != nil {
		t.Fatal(err)
	}
	if running, ended := r.Activity(); running != wire.MaxProcesses-1 || ended.IsZero() {
		t.Errorf("got %d, %v", running, ended)
	}
	leave(t, r, "one more")
	if _, err := r.Get(first); !errors.Is(err, ErrNotFound) {
		t.Errorf("the one that had ended: got %v", err)
	}
	write(t, all[5], "late") // into the void
}

func TestSilentJobsAreForgotten(t *testing.T) {
	r := fixture(t)
	id, w := leave(t, r, "sleep 1 &")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Get(id); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

// TestStartsOfOneID: who comes second waits for the first, and takes its place
// when that is gone.
func TestStartsOfOneID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := fixture(t)
		start := func(life time.Duration) <-chan error {
			done := make(chan error, 1)
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), life)
				defer cancel()
				_, _, err := r.Start(ctx, wire.ProcessRequest{ID: "one", Command: "x"})
				done <- err
			}()
			synctest.Wait()
			return done
		}
		first, second, third := start(time.Second), start(3*time.Second), start(2*time.Second)
		began := time.Now()
		for _, c := range []struct {
			done <-chan error
			at   time.Duration
		}{{first, time.Second}, {third, 2 * time.Second}, {second, 3 * time.Second}} {
			if err := <-c.done; !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != c.at {
				t.Errorf("got %v after %v", err, time.Since(began))
			}
		}
		if len(r.starting) != 0 || len(r.entries) != 0 {
			t.Errorf("left: %v, %v", r.starting, r.entries)
		}
	})
}

func TestCommandsAreCutToTheirBeginning(t *testing.T) {
	for n, want := range map[int]int{0: 0, wire.MaxProcessCommand - 1: wire.MaxProcessCommand - 1, wire.MaxProcessCommand: wire.MaxProcessCommand, wire.MaxProcessCommand + 1: wire.MaxProcessCommand} {
		if got := beginning(strings.Repeat("x", n)); len(got) != want {
			t.Errorf("%d: got %d", n, len(got))
		}
	}
	if got := beginning(strings.Repeat("x", wire.MaxProcessCommand-1) + "€"); len(got) != wire.MaxProcessCommand-1 {
		t.Errorf("want no part of a character, got %d bytes", len(got))
	}
}

func TestOldOutputIsSkipped(t *testing.T) {
	r := fixture(t)
	id, w := leave(t, r, "yes &")
	r.entries[0].ring.size = 10
	write(t, w, "0123456789€bcdefg") // ends at 19; from 9 on is kept
	o, err := r.Output(t.Context(), id, Query{Offset: 3, Limit: 4})
	if err != nil || o.Offset != 9 || o.Output != "9€" || o.NextOffset != 13 {
		t.Errorf("got %+v, %v", o, err)
	}
	write(t, w, "h") // now the character's beginning is next
	write(t, w, "i") // and now it is cut
	o, err = r.Output(t.Context(), id, Query{Offset: 3, Limit: 4})
	if err != nil || o.Offset != 13 || o.Output != "bcde" {
		t.Errorf("got %+v, %v", o, err)
	}
}
