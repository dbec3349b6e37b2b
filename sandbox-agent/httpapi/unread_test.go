package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/berth-dev/berth/sandbox-agent/output"
	"github.com/berth-dev/berth/sandbox-agent/shell"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// hold takes room that must be there.
func hold(t *testing.T, u *unread, size int64) *share {
	t.Helper()
	s, err := u.take(t.Context(), size)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// All that fits is let in at once; one byte more waits until as much is given back.
func TestUnreadAnswersAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := newUnread()
		first := hold(t, u, 10)
		hold(t, u, maxUnread-10)
		in := make(chan struct{})
		go func() {
			defer close(in)
			hold(t, u, 5)
		}()
		for _, left := range []int64{10, 6} {
			first.keep(left)
			synctest.Wait()
			select {
			case <-in:
				t.Fatalf("let in while %d bytes fit", 10-left)
			default:
			}
		}
		first.keep(5)
		<-in
		if u.held != maxUnread {
			t.Errorf("%d bytes are held, want %d", u.held, int64(maxUnread))
		}
	})
}

// What is larger than the bound is let in alone, and what comes after a waiting
// answer waits behind it, however small.
func TestUnreadAnswersAreTakenInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := newUnread()
		first := hold(t, u, 1)
		order := make(chan int64, 2)
		for _, size := range []int64{maxUnread + 1, 1} {
			go func() {
				s := hold(t, u, size)
				order <- size
				s.release()
			}()
			synctest.Wait()
		}
		if len(order) > 0 {
			t.Fatalf("%d bytes were let in beside others", <-order)
		}
		first.release()
		if large, small := <-order, <-order; large != maxUnread+1 || small != 1 {
			t.Errorf("let in first: %d", large)
		}
	})
}

// Who no longer waits holds nothing, and lets the next one in.
func TestUnreadAnswerGivenUpHoldsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := newUnread()
		all := hold(t, u, maxUnread)
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 2)
		for range 2 { // one in turn, one behind it
			go func() {
				_, err := u.take(ctx, 1)
				failed <- err
			}()
		}
		synctest.Wait()
		cancel()
		for range 2 {
			if err := <-failed; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		}
		all.release()
		all.release() // repeating it does nothing
		hold(t, u, maxUnread).release()
		var none *share
		none.release()
		if u.held != 0 {
			t.Errorf("%d bytes are held", u.held)
		}
	})
}

// verbose is a shell whose commands all write as much as a result may hold.
type verbose struct {
	*fakeShell
	ran int
}

func (v *verbose) Run(ctx context.Context, c shell.Command) (shell.Result, error) {
	if err := c.Turn(ctx); err != nil {
		return shell.Result{}, err
	}
	v.ran++
	return shell.Result{Stdout: output.Stream{Total: int64(c.OutputBytes)}}, nil
}

// unreadable is a connection whose other side reads once it is told to.
type unreadable struct {
	http.ResponseWriter
	read <-chan struct{}
}

func (u unreadable) Write(p []byte) (int, error) {
	<-u.read
	return u.ResponseWriter.Write(p)
}

// With two results of the largest size unread, in whichever form, the next command
// begins only when one of them has been read.
func TestCommandsWaitForUnreadResults(t *testing.T) {
	t.Parallel()
	for _, accept := range []string{contentJSON, wire.FramesType} {
		synctest.Test(t, func(t *testing.T) {
			s, sh := fixture(t, anyone{})
			v := &verbose{fakeShell: sh}
			s.shell = v
			read := make(chan struct{})
			for range 3 {
				go func() {
					r := httptest.NewRequest(http.MethodPost, wire.ExecPath, strings.NewReader(`{"command":"x","max_output_bytes":4194304}`))
					r.Header.Set("Content-Type", contentJSON)
					r.Header.Set("Accept", accept)
					s.ServeHTTP(unreadable{httptest.NewRecorder(), read}, r)
				}()
				synctest.Wait()
			}
			if v.ran != 2 {
				t.Errorf("%s: %d commands ran, want 2", accept, v.ran)
			}
			close(read)
			synctest.Wait()
			if v.ran != 3 || s.unread.held != 0 {
				t.Errorf("%s: %d commands ran, want 3; %d bytes are held, want none", accept, v.ran, s.unread.held)
			}
		})
	}
}

// listed are processes whose command is long.
type listed struct{ Processes }

func (listed) List(context.Context) ([]wire.Process, error) {
	return []wire.Process{{Command: strings.Repeat("x", wire.MaxProcessCommand)}}, nil
}

// A list of processes waits for unread answers as well, and holds nothing once it
// has been read.
func TestListsWaitForUnreadAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := fixture(t, anyone{})
		s.KeepProcesses(listed{})
		all := hold(t, s.unread, maxUnread)
		w := httptest.NewRecorder()
		go s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, wire.ProcessesPath, nil))
		synctest.Wait()
		if w.Body.Len() > 0 {
			t.Errorf("answered: %s", w.Body)
		}
		all.release()
		synctest.Wait()
		if w.Body.Len() < wire.MaxProcessCommand || s.unread.held != 0 {
			t.Errorf("answered %d bytes; %d bytes are held", w.Body.Len(), s.unread.held)
		}
	})
}
