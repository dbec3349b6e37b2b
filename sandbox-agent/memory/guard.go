package memory

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrNotNeeded is returned by Guard where the kernel kills one process only.
var ErrNotNeeded = errors.New("the kernel kills one process, not the container")

// Kill ends one process and waits for that. It calls dying just before, and
// returns whether it did. limit is the container's, in bytes.
type Kill func(limit uint64, dying func()) bool

// Guard calls kill, until stop is called, whenever the limit was hit and hardly
// anything is left that the kernel could reclaim. It is needed on cgroup v2,
// where all would be killed. Nothing is polled: the kernel tells of each time
// that the limit was hit.
func (w *Watch) Guard(kill Kill) (stop func(), err error) {
	grouped, known := readNumber(filepath.Join(w.cgroup.Path, "memory.oom.group"))
	if !w.cgroup.V2 || !known || grouped == 0 {
		return nil, ErrNotNeeded
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watch memory events: %w", err)
	}
	changes := os.NewFile(uintptr(fd), "inotify")
	if _, err := unix.InotifyAddWatch(fd, filepath.Join(w.cgroup.Path, events(w.cgroup)), unix.IN_MODIFY); err != nil {
		return nil, errors.Join(fmt.Errorf("watch memory events: %w", err), changes.Close())
	}
	go w.guard(changes, kill)
	return func() { changes.Close() }, nil
}

func (w *Watch) guard(changes *os.File, kill Kill) {
	// Counted before it dies, as the kernel does: its end may end the command.
	dying := func() { w.killed.Add(1) }
	var event [4096]byte
	for {
		if _, err := changes.Read(event[:]); err != nil {
			return // closed
		}
		for limit, full := w.full(); full && kill(limit, dying); limit, full = w.full() {
		}
	}
}

// nearly is the share of the limit, in percent, beyond which a command is killed.
const nearly = 95

// full tells whether hardly anything is left to reclaim below the limit.
func (w *Watch) full() (limit uint64, full bool) {
	limit, ok := w.limit()
	if !ok {
		return 0, false
	}
	stat, err := os.ReadFile(filepath.Join(w.cgroup.Path, "memory.stat"))
	if err != nil {
		return 0, false
	}
	var used uint64
	for _, name := range []string{"anon", "shmem", "kernel_stack", "pagetables", "slab_unreclaimable"} {
		n, _ := count(stat, name) // an older kernel has not all
		used += n
	}
	return limit, used >= limit/100*nearly && !w.canSwap()
}

// canSwap tells whether there is room to swap to.
func (w *Watch) canSwap() bool {
	const meminfo = "/proc/meminfo"
	limit, limited := readNumber(filepath.Join(w.cgroup.Path, "memory.swap.max"))
	used, known := readNumber(filepath.Join(w.cgroup.Path, "memory.swap.current"))
	if !known || limited && used >= limit/100*nearly {
		return false // no swap, or the cgroup's share is used up
	}
	content, err := os.ReadFile(meminfo)
	if err != nil {
		return false
	}
	for line := range bytes.Lines(content) {
		if f := bytes.Fields(line); len(f) > 1 && string(f[0]) == "SwapFree:" {
			return string(f[1]) != "0"
		}
	}
	return false
}
