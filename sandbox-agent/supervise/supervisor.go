package supervise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/process"
	"github.com/berth-dev/berth/sandbox-agent/spool"
)

// answerTime is how long the supervisor may take to begin, and to start a
// process: much more than a fork, also on a machine under load.
const answerTime = 10 * time.Second

// ErrLost is returned when the supervisor was lost while it started a process:
// that may run.
var ErrLost = errors.New("the supervisor of background processes ended, or got stuck, while it started this one")

// Supervisor starts processes by way of a supervisor, and a new one after
// that has ended. It is safe for concurrent use.
type Supervisor struct {
	reaper     *process.Reaper
	processors []int

	mu   sync.Mutex // held while a process is started
	link atomic.Pointer[link]
}

// New returns a Supervisor that starts nothing yet. What it will start runs on
// processors only, unless there are none.
func New(r *process.Reaper, processors []int) *Supervisor {
	return &Supervisor{reaper: r, processors: processors}
}

// PID is the supervisor's, or 0 when there is none.
func (s *Supervisor) PID() int {
	if l := s.link.Load(); l != nil && l.alive() {
		return l.child.PID
	}
	return 0
}

// Start starts a program in dir with files as its descriptors from 0 up, in a
// session of its own. No command may run meanwhile.
func (s *Supervisor) Start(p Program, dir *os.File, files []*os.File) (*Process, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	if len(data) > maxProgram || len(files) > maxFiles || len(files) == 0 {
		return nil, fmt.Errorf("start %s: command and environment take %d bytes: too many", p.Path, len(data))
	}
	program, err := spool.Memory("program", data)
	if err != nil {
		return nil, err
	}
	defer program.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	fds := []int{int(program.Fd()), int(dir.Fd())}
	for _, f := range files {
		fds = append(fds, int(f.Fd()))
	}
	proc, err := s.try(fds)
	if errors.Is(err, errNotTaken) { // it was killed, or its limits were lowered, and that is seen only now
		proc, err = s.try(fds)
	}
	return proc, err
}

func (s *Supervisor) try(fds []int) (*Process, error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	l, err := s.ready(ctx)
	if err != nil {
		return nil, err
	}
	return l.start(ctx, fds)
}

// ready starts a supervisor unless there is one.
func (s *Supervisor) ready(ctx context.Context) (*link, error) {
	if l := s.link.Load(); l != nil && l.alive() {
		return l, nil
	}
	l, err := begin(ctx, s.reaper, arguments(s.processors))
	if err != nil {
		return nil, fmt.Errorf("start the supervisor of background processes: %w", err)
	}
	s.link.Store(l)
	return l, nil
}

// Close lets the supervisor end. What it started falls to the agent.
func (s *Supervisor) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.link.Load(); l != nil {
		l.conn.Close()
	}
}
