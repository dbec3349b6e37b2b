package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/berth-dev/berth/sandbox-agent/shell"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// waitingShell runs each command until it is let go.
type waitingShell struct {
	fakeShell
	came atomic.Int32
	let  chan struct{}
}

func (s *waitingShell) Run(ctx context.Context, _ shell.Command) (shell.Result, error) {
	s.came.Add(1)
	select {
	case <-s.let:
		return shell.Result{}, nil
	case <-ctx.Done():
		return shell.Result{}, ctx.Err()
	}
}

// Large requests are read only while there is room for them: those that wait hold
// nothing. Small ones, and what is typed into a process, don't wait for that.
func TestLargeBodiesAreBoundedTogether(t *testing.T) {
	t.Parallel()
	for path, body := range map[string]string{
		wire.ExecPath:      `{"command":"%s"}`,
		wire.ProcessesPath: `{"command":"%s"}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			s, _ := fixture(t, anyone{})
			sh := &waitingShell{let: make(chan struct{})}
			s.shell = sh
			processes := &waitingProcesses{shell: sh}
			s.KeepProcesses(processes)
			post := func(ctx context.Context, path, body string) int {
				r := httptest.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(body))
				r.Header.Set("Content-Type", contentJSON)
				w := httptest.NewRecorder()
				s.ServeHTTP(w, r)
				return w.Code
			}
			large := fmt.Sprintf(body, strings.Repeat("x", wire.MaxExecBody-len(body)))
			const fit = maxBodies/wire.MaxExecBody - decoding + 1
			var all sync.WaitGroup
			for range fit + 3 {
				all.Go(func() {
					if code := post(t.Context(), path, large); code/100 != 2 {
						t.Errorf("%s: %d", path, code)
					}
				})
			}
			synctest.Wait()
			gone, leave := context.WithCancel(t.Context())
			all.Go(func() {
				if code := post(gone, path, large); code != http.StatusRequestTimeout {
					t.Errorf("%s: %d for one that left", path, code)
				}
			})
			synctest.Wait()
			if got := sh.came.Load(); got > fit {
				t.Errorf("%s: %d large requests are held, want %d", path, got, fit)
			}
			leave()
			synctest.Wait()
			if held := s.bodies.commands.held; held != fit*int64(len(large)) {
				t.Errorf("%s: %d bytes are held, want %d", path, held, fit*len(large))
			}
			all.Go(func() { post(t.Context(), wire.ExecPath, `{"command":"small"}`) })
			synctest.Wait()
			if got := sh.came.Load(); got != fit+1 {
				t.Errorf("%s: %d requests came through, want a small one besides %d", path, got, fit)
			}
			if code := post(t.Context(), wire.ProcessesPath+"/a"+wire.ProcessInputPath, `{"data":"`+strings.Repeat("x", 1<<19)+`"}`); code != http.StatusOK {
				t.Errorf("%s: input is answered %d", path, code)
			}
			close(sh.let)
			all.Wait()
			if s.bodies.commands.held != 0 || s.bodies.input.held != 0 {
				t.Errorf("%s: %+v is held in the end", path, s.bodies)
			}
		})
	}
}

// waitingProcesses starts each process when a shell lets it.
type waitingProcesses struct {
	fakeProcesses
	shell *waitingShell
}

func (p *waitingProcesses) Start(ctx context.Context, _ wire.ProcessRequest) (wire.Process, bool, error) {
	_, err := p.shell.Run(ctx, shell.Command{})
	return wire.Process{ID: "a"}, true, err
}

func (p *waitingProcesses) Input(context.Context, string, wire.ProcessInput) (int, error) {
	return 0, nil
}
