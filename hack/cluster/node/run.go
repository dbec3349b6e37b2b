package node

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/hack/cluster/process"
)

// Descriptors that Start hands to Supervise.
const (
	resultFD    = 3 // written: nothing when the node is set up, else why not
	firstNodeFD = 4 // the first node's network namespace; not on the first node
)

// superviseCommand is the hidden sub-command that Start runs.
const superviseCommand = "supervise"

// Start starts the node: this very program once more, as PID 1 of namespaces of
// its own, outliving the caller. firstNode is the first node's identity, unused
// on the first node. When it returns nil, the daemons are being started.
func Start(s Spec, firstNode process.Identity) error {
	result, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer result.Close()
	defer theirs.Close()
	log, err := os.OpenFile(s.File("supervisor.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()

	// The node outlives whoever waits for the end of a descriptor that we were
	// started with, such as a pipe of make's.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("keeping inherited descriptors from the node: %w", err)
	}
	cmd := exec.Command("/proc/self/exe", superviseCommand, s.Dir())
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{theirs}
	if !s.ControlPlane() {
		netns, err := os.Open(Netns(firstNode))
		if err != nil {
			return fmt.Errorf("opening the first node's network namespace: %w", err)
		}
		defer netns.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, netns)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid:     true,
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("making the namespaces of %s (they need root with CAP_SYS_ADMIN): %w", s.Name(), err)
	}
	theirs.Close()
	return awaitStart(s, cmd, result)
}

// awaitStart reads what the node has to say until it closes the pipe.
func awaitStart(s Spec, cmd *exec.Cmd, result *os.File) error {
	message := make([]byte, 4096)
	n, _ := result.Read(message) // 0 at the end of file
	if n > 0 {
		return errors.Join(fmt.Errorf("starting %s: %s", s.Name(), message[:n]), ignoreExit(cmd.Wait()))
	}
	if _, running, err := Running(s.Dir()); err != nil || !running {
		return errors.Join(fmt.Errorf("%s ended while it started, see %s", s.Name(), s.File("supervisor.log")), err)
	}
	return cmd.Process.Release()
}

func ignoreExit(err error) error {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil
	}
	return err
}

// Supervise is the node's PID 1. It returns when it's told to end, or with an
// error when the node can't be set up.
func Supervise(ctx context.Context, dir string) error {
	result := os.NewFile(resultFD, "result")
	unix.CloseOnExec(resultFD)
	s, lock, err := setUp(dir)
	if err != nil {
		fmt.Fprint(result, err)
		return err
	}
	defer lock.Close()
	result.Close()
	supervisor := &process.Supervisor{LogDir: s.File("log"), Log: os.Stderr}
	supervisor.Run(ctx, s.Daemons())
	return nil
}

// setUp prepares everything that daemons need. The lock is held for as long as
// the node lives.
func setUp(dir string) (s Spec, lock *os.File, err error) {
	if s, err = Load(dir); err != nil {
		return s, nil, err
	}
	if os.Getpid() != 1 {
		return s, nil, errors.New("this is started by `cluster up` as PID 1 of a node, not by hand")
	}
	if lock, err = process.TryLock(s.File("lock")); err != nil {
		return s, nil, fmt.Errorf("the node runs already: %w", err)
	}
	// /proc is still the machine's: it shows the ID that others know us by.
	self, err := process.Self()
	if err != nil {
		return s, nil, err
	}
	if err := self.Write(pidFile(dir)); err != nil {
		return s, nil, err
	}
	var firstNode *os.File
	if !s.ControlPlane() {
		firstNode = os.NewFile(firstNodeFD, "first node's network namespace")
		defer firstNode.Close()
	}
	if err := unix.Sethostname([]byte(s.Name())); err != nil {
		return s, nil, err
	}
	for _, step := range []func() error{
		func() error { return setUpMounts(s) },
		func() error { return setUpNetwork(s, firstNode) },
		func() error { return makeCgroups(s.CgroupRoot()) },
		func() error { return writeConfigs(s) },
	} {
		if err := step(); err != nil {
			return s, nil, err
		}
	}
	return s, lock, nil
}
