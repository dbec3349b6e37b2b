package standalone

import (
	"os/exec"
	"runtime"
)

// launcher starts processes from one thread that lives as long as the launcher: the
// kernel ends a process with the thread that started it, not with that one's
// process.
type launcher struct{ starts chan func() }

func newLauncher() *launcher {
	l := &launcher{starts: make(chan func())}
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for start := range l.starts {
			start()
		}
	}()
	return l
}

// start is cmd.Start.
func (l *launcher) start(cmd *exec.Cmd) error {
	failed := make(chan error, 1)
	l.starts <- func() { failed <- cmd.Start() }
	return <-failed
}

// close ends the thread. Nothing that it started runs any more.
func (l *launcher) close() { close(l.starts) }
