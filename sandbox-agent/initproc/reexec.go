package initproc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// advice is for a machine that lets nobody make namespaces, or mount in them.
const advice = "run as root, let users make user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone=1 and kernel.apparmor_restrict_unprivileged_userns=0, those that this system has), or use a container or virtual machine of your own"

// inside marks a process that was started isolated.
const inside = "BERTH_REEXECUTED"

// Reexec runs this program again as PID 1 of a new PID namespace, with a /proc
// of that namespace, and returns its exit code when it has ended, or 128 and the
// number of the signal that killed it. TERM and INT
// are passed on as TERM. It needs root, or user namespaces that anyone may
// make. inherited are its descriptors from 3 up; they are closed here.
func Reexec(inherited ...*os.File) (exitCode int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = inherited
	Isolate(cmd)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT)
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("make a PID namespace: %w: %s", err, advice)
	}
	for _, file := range inherited {
		if err := file.Close(); err != nil {
			return 0, fmt.Errorf("close what the new process has inherited: %w", err)
		}
	}
	go func() {
		for range signals {
			_ = cmd.Process.Signal(unix.SIGTERM) // fails only when it has ended
		}
	}()
	err = cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return cmd.ProcessState.ExitCode(), nil
}

// Isolate lets cmd, which runs this program, start as PID 1 of a new PID
// namespace: see Reexecuted.
func Isolate(cmd *exec.Cmd) {
	cmd.Env = append(cmd.Environ(), inside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS,
		Pdeathsig:  unix.SIGKILL,
	}
	if uid := os.Getuid(); uid != 0 {
		gid := os.Getgid()
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		// mount(2) in the new namespace.
		cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
	}
}

// Reexecuted tells whether this process was started isolated. When it did, the
// namespace gets its own /proc.
func Reexecuted() (bool, error) {
	if os.Getenv(inside) == "" || !IsInit() {
		return false, nil
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return true, fmt.Errorf("make mounts private: %w: %s", err, advice)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return true, fmt.Errorf("mount /proc: %w: %s", err, advice)
	}
	return true, nil
}
