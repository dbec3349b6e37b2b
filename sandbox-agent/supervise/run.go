package supervise

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/affinity"
	"github.com/berth-dev/berth/sandbox-agent/initproc"
	"github.com/berth-dev/berth/sandbox-agent/process"
)

// socket is the supervisor's end of the pair, among the descriptors that it is
// born with.
const socket = 3

// oomScoreAdj puts all but the agent first in line for the kernel's OOM killer.
const oomScoreAdj = "1000"

// ProcessorFlag names the flag that gives Run's processors, one each.
const ProcessorFlag = "processor"

// Run serves the agent until it is gone. What it starts runs on processors only,
// unless there are none.
func Run(processors []int) error {
	// It does next to nothing, for a long time.
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(10)
	// Before it can't be dumped: the file is root's then. Children inherit it.
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte(oomScoreAdj), 0); err != nil {
		return fmt.Errorf("adjust OOM score: %w", err)
	}
	if _, err := initproc.Protect(); err != nil { // TERM arrives, and is not read
		return err
	}
	limits, err := initproc.ReadLimits()
	if err != nil {
		return err
	}
	reaper, err := process.NewReaper()
	if err != nil {
		return err
	}
	defer reaper.Close()
	if len(processors) > 0 {
		reaper.Confine(affinity.Set(processors))
	}
	s := server{reaper: reaper, limits: limits}
	if err := s.send(reply{Kind: ready}, -1); err != nil {
		return err
	}
	return s.serve()
}

type server struct {
	reaper *process.Reaper
	limits *initproc.Limits
}

// serve takes requests, one at a time. Replies are also sent by the goroutines
// that wait for a process each: a message is sent whole or not at all.
func (s server) serve() error {
	message := make([]byte, maxMessage)
	oob := make([]byte, unix.CmsgSpace((extraFiles+maxFiles)*4))
	for {
		n, oobn, flags, _, err := unix.Recvmsg(socket, message, oob, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read request: %w", err)
		}
		if n == 0 {
			return nil // the agent is gone
		}
		fds, err := descriptors(oob[:oobn])
		if err != nil {
			return err
		}
		err = s.handle(message[:n], fds, flags)
		closeAll(fds)
		if err != nil {
			return err
		}
	}
}

// handle starts what a request asks for. Its error is one of the socket.
func (s server) handle(message []byte, fds []int, flags int) error {
	r, err := parseRequest(message)
	if err != nil {
		return fmt.Errorf("read request: %w", err)
	}
	// One whose limits are lowered for good ends: the next has the agent's.
	if err := s.limits.Restore(); err != nil {
		return err
	}
	if flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 || len(fds) <= extraFiles {
		return s.send(reply{Kind: again, Seq: r.Seq}, -1)
	}
	if err := s.send(reply{Kind: taken, Seq: r.Seq}, -1); err != nil {
		return err
	}
	child, pidfd, err := s.start(fds)
	if err != nil {
		text := err.Error()
		return s.send(reply{Kind: failed, Seq: r.Seq, Error: text[:min(len(text), maxMessage/8)]}, -1)
	}
	err = s.send(reply{Kind: started, Seq: r.Seq, PID: child.PID}, pidfd)
	if pidfd >= 0 {
		unix.Close(pidfd)
	}
	go func() {
		<-child.Exited()
		_ = s.send(reply{Kind: exited, PID: child.PID, Code: child.ExitCode()}, -1) // the agent is gone, and this ends
	}()
	return err
}

func (s server) start(fds []int) (child *process.Child, pidfd int, err error) {
	p, err := readProgram(fds[0])
	if err != nil {
		return nil, -1, err
	}
	pidfd = -1
	attr := &syscall.ProcAttr{
		Dir: fmt.Sprintf("/proc/self/fd/%d", fds[1]),
		Env: p.Env,
		Sys: &syscall.SysProcAttr{Setsid: true, Setctty: p.Terminal, PidFD: &pidfd},
	}
	for _, fd := range fds[extraFiles:] {
		attr.Files = append(attr.Files, uintptr(fd))
	}
	child, err = s.reaper.Start(p.Path, p.Argv, attr)
	if err != nil {
		return nil, pidfd, err
	}
	_ = s.reaper.StandBack(child) // fails only for a child that is gone already
	return child, pidfd, nil
}

func readProgram(fd int) (p Program, err error) {
	data, err := io.ReadAll(io.LimitReader(reader(fd), maxProgram+1))
	if err != nil {
		return p, fmt.Errorf("read program: %w", err)
	}
	if len(data) > maxProgram {
		return p, errMessage
	}
	if err := strict(data, &p); err != nil {
		return p, err
	}
	if p.Path == "" || len(p.Argv) == 0 {
		return p, errMessage
	}
	return p, nil
}

// reader reads a file without owning it.
type reader int

func (r reader) Read(b []byte) (int, error) {
	n, err := unix.Read(int(r), b)
	if err == nil && n == 0 && len(b) > 0 {
		return 0, io.EOF
	}
	return max(n, 0), err
}

// send sends a reply, and a descriptor unless it is negative.
func (s server) send(r reply, fd int) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	var oob []byte
	if fd >= 0 {
		oob = unix.UnixRights(fd)
	}
	for {
		err := unix.Sendmsg(socket, b, oob, nil, unix.MSG_NOSIGNAL)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
