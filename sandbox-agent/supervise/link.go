package supervise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/process"
)

// link is one supervisor that runs, and the agent's end of its socket.
type link struct {
	reaper *process.Reaper
	child  *process.Child
	conn   *net.UnixConn
	ready  chan struct{}
	lost   chan struct{} // closed with the supervisor's end

	mu        sync.Mutex
	pin       process.Pin // released with the link's end
	seq       uint64
	pending   map[uint64]chan answer
	taken     uint64 // the last request that came
	processes map[int]*Process
}

type answer struct {
	process *Process
	err     error
}

// self is this very program, whatever has become of its file.
const self = "/proc/self/exe"

// arguments are the supervisor's: see main.
func arguments(processors []int) []string {
	argv := []string{"berth-agent", "supervise"}
	for _, p := range processors {
		argv = append(argv, "--"+ProcessorFlag, strconv.Itoa(p))
	}
	return argv
}

// begin starts a supervisor and waits until it takes requests.
func begin(ctx context.Context, r *process.Reaper, argv []string) (*link, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	mine, theirs := os.NewFile(uintptr(fds[0]), "supervisor"), os.NewFile(uintptr(fds[1]), "agent")
	defer mine.Close()
	defer theirs.Close()
	conn, err := net.FileConn(mine)
	if err != nil {
		return nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		conn.Close()
		return nil, err
	}
	defer null.Close()
	attr := &syscall.ProcAttr{
		Dir:   "/",
		Env:   os.Environ(),
		Files: []uintptr{null.Fd(), null.Fd(), os.Stderr.Fd(), theirs.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	}
	child, err := r.Start(self, argv, attr)
	if err != nil {
		conn.Close()
		return nil, err
	}
	l := &link{
		reaper: r, child: child, conn: conn.(*net.UnixConn), ready: make(chan struct{}), lost: make(chan struct{}),
		pending: map[uint64]chan answer{}, processes: map[int]*Process{},
	}
	l.pin, err = process.NewPin(child.PID)
	theirs.Close() // else its end would not be seen
	go l.receive()
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return l, l.await(ctx)
}

// await waits for the supervisor's first word, and for it to be older, by the
// kernel's clock, than any command to come.
func (l *link) await(ctx context.Context) error {
	select {
	case <-l.ready:
	case <-l.lost:
		return errors.New("it ended at once")
	case <-ctx.Done():
		l.kill()
		return fmt.Errorf("it does not begin: %w", ctx.Err())
	}
	if h, err := process.Open(l.child.PID); err == nil && process.Now() <= h.Start {
		<-time.After(time.Second / process.TicksPerSecond)
	}
	return nil
}

func (l *link) alive() bool {
	select {
	case <-l.lost:
		return false
	default:
		return true
	}
}

// kill ends a supervisor that does not answer.
func (l *link) kill() {
	const patience = time.Second
	l.signal(unix.SIGKILL)
	select {
	case <-l.lost: // after its last word
	case <-time.After(patience):
		l.conn.Close()
		<-l.lost
	}
}

// signal sends a signal to the supervisor, if it is there.
func (l *link) signal(sig unix.Signal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.pin.Signal(sig) // who doesn't take it is given up when it doesn't answer
}

// start sends a request and waits for what becomes of it.
func (l *link) start(ctx context.Context, fds []int) (*Process, error) {
	result := make(chan answer, 1)
	l.mu.Lock()
	l.seq++
	seq := l.seq
	l.pending[seq] = result
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.pending, seq)
	}()
	l.signal(unix.SIGCONT) // a command may have stopped it
	b, err := json.Marshal(request{Seq: seq})
	if err != nil {
		return nil, err
	}
	if _, _, err := l.conn.WriteMsgUnix(b, unix.UnixRights(fds...), nil); err != nil {
		l.kill()
		return nil, fmt.Errorf("%w: %w", errNotTaken, err)
	}
	select {
	case a := <-result:
		return a.process, a.err
	case <-l.lost:
	case <-ctx.Done():
	}
	l.kill() // one that is stuck
	select {
	case a := <-result: // came before the end
		return a.process, a.err
	default:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken < seq {
		return nil, errNotTaken
	}
	return nil, ErrLost
}

// errNotTaken is returned for a request that the supervisor has not seen, or not
// as a whole.
var errNotTaken = errors.New("the supervisor of background processes ended, or has too many files open")

// receive takes replies until the supervisor is gone or breaks the form.
func (l *link) receive() {
	b, oob := make([]byte, maxMessage), make([]byte, unix.CmsgSpace(4))
	for {
		n, oobn, _, _, err := l.conn.ReadMsgUnix(b, oob)
		if err != nil {
			break
		}
		fds, err := descriptors(oob[:oobn])
		if err != nil {
			break
		}
		r, err := parseReply(b[:n])
		if err == nil {
			fds, err = l.take(r, fds)
		}
		closeAll(fds)
		if err != nil {
			break
		}
	}
	l.end()
}

// take acts on a reply and returns the descriptors that it has no use for.
func (l *link) take(r reply, fds []int) ([]int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch r.Kind {
	case taken:
		l.taken = r.Seq
	case ready:
		select {
		case <-l.ready:
			return fds, errMessage
		default:
			close(l.ready)
		}
	case again, failed:
		if waiting := l.pending[r.Seq]; waiting != nil {
			delete(l.pending, r.Seq)
			err := errNotTaken
			if r.Kind == failed {
				err = errors.New(r.Error)
			}
			waiting <- answer{err: err}
		}
	case exited:
		p := l.processes[r.PID]
		if p == nil {
			return fds, errMessage
		}
		delete(l.processes, r.PID)
		if p.child != nil {
			l.reaper.Forget(p.child)
		}
		p.end(r.Code, true)
	case started:
		waiting := l.pending[r.Seq]
		if waiting == nil || l.processes[r.PID] != nil {
			return fds, errMessage
		}
		delete(l.pending, r.Seq)
		p := &Process{PID: r.PID, ended: make(chan struct{})}
		if len(fds) == 1 {
			p.pin, fds = process.PinOf(r.PID, fds[0]), nil
		} else {
			p.pin, _ = process.NewPin(r.PID) // the zero value, for one that is gone
		}
		p.child, _ = l.reaper.Adopt(p.pin) // in case that it falls to the agent
		l.processes[r.PID] = p
		waiting <- answer{process: p}
	}
	return fds, nil
}

// end lets go of the supervisor, and takes over what it started.
func (l *link) end() {
	l.signal(unix.SIGKILL) // one that broke the form
	l.conn.Close()
	l.mu.Lock()
	orphans := l.processes
	l.processes = map[int]*Process{}
	close(l.lost)
	l.mu.Unlock()
	<-l.child.Exited() // by then they have fallen to the agent
	l.mu.Lock()
	l.pin.Release()
	l.mu.Unlock()
	for _, p := range orphans {
		go p.inherit(l.reaper)
	}
}
