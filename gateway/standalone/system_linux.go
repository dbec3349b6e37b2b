package standalone

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// supported tells why this system can't run sessions.
func supported() error { return nil }

// attributes let an agent die with the gateway, and keep a terminal's Ctrl-C from
// it: the gateway ends it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// lock locks a file for as long as it is open, and tells whether it could.
func lock(file *os.File) bool {
	return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}

// mine tells whether a file is this user's.
func mine(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}
