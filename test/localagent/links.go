package localagent

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// refuseLinks names a program that the test binary becomes, once the kernel refuses
// it hard links.
const refuseLinks = "BERTH_TEST_REFUSE_LINKS_TO"

// withoutLinks returns what has the kernel refuse links and becomes argv: this test
// binary, by way of Main.
func withoutLinks(argv []string) (program []string, environ string, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, "", fmt.Errorf("find the test binary: %w", err)
	}
	return append([]string{self}, argv[1:]...), refuseLinks + "=" + argv[0], nil
}

// becomeWithoutLinks becomes the program that withoutLinks was given.
func becomeWithoutLinks(program string) error {
	if err := errors.Join(os.Unsetenv(refuseLinks), RefuseLinks()); err != nil {
		return err
	}
	return unix.Exec(program, append([]string{program}, os.Args[1:]...), os.Environ())
}

// RefuseLinks has linkat(2) fail with EPERM from here on, for this process and all
// that it starts, as gVisor or a file system without links does.
func RefuseLinks() error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number of the system call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_LINKAT, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("forgo new privileges: %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program))); errno != 0 {
		return fmt.Errorf("install the filter of system calls: %w", errno)
	}
	return nil
}
