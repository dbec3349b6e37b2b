package shell

import "golang.org/x/sys/unix"

// A spare goes on within the loop of the shell that forked it, on top of all
// that bash has on its stack there: some 3 KiB each time. A session that does
// that for thousands of commands needs more than the usual 8 MiB, so every
// deeperEvery times its limit is raised by deeperBy.
const (
	deeperEvery = 256
	deeperBy    = 1 << 20
)

// deepen makes room for one more shell on the stack of the process with pid.
func (l *life) deepen(pid int) {
	if l.depth++; l.depth%deeperEvery != 0 {
		return
	}
	var limit unix.Rlimit
	if unix.Prlimit(pid, unix.RLIMIT_STACK, nil, &limit) != nil || limit.Cur == unix.RLIM_INFINITY {
		return
	}
	limit.Cur = min(limit.Cur+deeperBy, limit.Max)
	// Fails for a process that is gone, which is seen soon enough.
	_ = unix.Prlimit(pid, unix.RLIMIT_STACK, &limit, nil)
}
