package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Daemon is a program that is to run for as long as its node does.
type Daemon struct {
	// Name is unique in the node and names the log file.
	Name string
	// Argv is the absolute path of the program and its arguments.
	Argv []string
	// Env is its whole environment.
	Env []string
	// After must hold before it is started for the first time.
	After []Probe
}

// Supervisor starts daemons, starts them again when they end, and reaps every
// process that is orphaned. It must be PID 1 of its PID namespace, and nobody
// else in the program may wait for a child.
type Supervisor struct {
	// LogDir gets one file per daemon, <name>.log.
	LogDir string
	// Log gets a line for each start and end.
	Log io.Writer

	prober Prober

	mu     sync.Mutex
	exited map[int]chan unix.WaitStatus
}

// A daemon that ends is started again after a pause, which doubles up to a
// limit, and is short again once it has run for steady.
const (
	firstPause = 200 * time.Millisecond
	lastPause  = 5 * time.Second
	steady     = 10 * time.Second
)

// Run supervises the daemons until the context ends.
func (s *Supervisor) Run(ctx context.Context, daemons []Daemon) {
	s.prober = NewProber((&net.Dialer{}).DialContext)
	s.exited = map[int]chan unix.WaitStatus{}
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	defer signal.Stop(children)

	var running sync.WaitGroup
	for _, d := range daemons {
		running.Go(func() { s.keep(ctx, d) })
	}
	for {
		select {
		case <-children:
			s.reap()
		case <-ctx.Done():
			running.Wait()
			return
		}
	}
}

// keep runs one daemon again and again.
func (s *Supervisor) keep(ctx context.Context, d Daemon) {
	for _, p := range d.After {
		if err := s.prober.Wait(ctx, p); err != nil {
			return // only ends with the context
		}
	}
	pause := firstPause
	for ctx.Err() == nil {
		begin := time.Now()
		s.logf("%s: starting", d.Name)
		status, err := s.run(ctx, d)
		ran := time.Since(begin)
		if err != nil {
			s.logf("%s: %v", d.Name, err)
		} else {
			s.logf("%s: ended after %s, %s", d.Name, ran.Round(time.Millisecond), describe(status))
		}
		if ran > steady {
			pause = firstPause
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, lastPause)
	}
}

// run starts the daemon once and returns when it ended.
func (s *Supervisor) run(ctx context.Context, d Daemon) (unix.WaitStatus, error) {
	log, err := os.OpenFile(filepath.Join(s.LogDir, d.Name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	cmd := exec.Command(d.Argv[0], d.Argv[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = d.Env, "/", log, log
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true}

	// Under the lock that reap takes: it must not meet the child before we've
	// said who waits for it.
	s.mu.Lock()
	err = cmd.Start()
	if err != nil {
		s.mu.Unlock()
		return 0, err
	}
	exited := make(chan unix.WaitStatus, 1)
	pid := cmd.Process.Pid
	s.exited[pid] = exited
	s.mu.Unlock()
	if err := cmd.Process.Release(); err != nil { // reap waits for it, not os/exec
		return 0, err
	}

	select {
	case status := <-exited:
		return status, nil
	case <-ctx.Done():
		return 0, errors.Join(ctx.Err(), unix.Kill(pid, unix.SIGTERM))
	}
}

// reap collects every child that ended: daemons, and orphans such as containerd's
// shims, which are reparented to PID 1.
func (s *Supervisor) reap() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return // ECHILD: no child at all; 0: none that ended
		}
		if exited, ours := s.exited[pid]; ours {
			exited <- status
			delete(s.exited, pid)
		}
	}
}

func (s *Supervisor) logf(format string, args ...any) {
	fmt.Fprintf(s.Log, time.Now().UTC().Format("15:04:05.000 ")+format+"\n", args...)
}

func describe(status unix.WaitStatus) string {
	if status.Signaled() {
		return "killed by " + status.Signal().String()
	}
	return fmt.Sprintf("exit code %d", status.ExitStatus())
}
