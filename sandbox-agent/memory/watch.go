package memory

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/cgroup"
)

// Watch counts the processes of this container that were killed for want of
// memory. A nil one counts none. It is safe for concurrent use.
type Watch struct {
	cgroup cgroup.Dir
	events int           // a descriptor, kept: read again and again from its start
	killed atomic.Uint64 // by Guard
}

// Open returns a watch of the container that this process is in, or an error
// that says why there is none.
func Open() (*Watch, error) { return open("/proc") }

func open(proc string) (*Watch, error) {
	c, err := find(proc)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(c.Path, events(c))
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("memory cgroup: open %s: %w", path, err)
	}
	w := &Watch{cgroup: c, events: fd}
	if _, ok := w.read("oom_kill"); !ok {
		unix.Close(fd)
		return nil, fmt.Errorf("memory cgroup: %s does not count kills", path)
	}
	return w, nil
}

// Kills is how many processes were killed since some time before the watch was
// opened. The kernel counts one before it dies. It costs a system call.
func (w *Watch) Kills() uint64 {
	if w == nil {
		return 0
	}
	n, _ := w.read("oom_kill") // 0 from then on, if it can't be read any more
	return n + w.killed.Load()
}

func (w *Watch) read(name string) (n uint64, ok bool) {
	var buffer [512]byte
	size, err := unix.Pread(w.events, buffer[:], 0)
	if err != nil {
		return 0, false
	}
	return count(buffer[:size], name)
}

// Notice says what befell a command during which n processes were killed.
func (w *Watch) Notice(n uint64) string {
	who := "a process was"
	if n > 1 {
		who = strconv.FormatUint(n, 10) + " processes were"
	}
	limit, ok := w.limit()
	if !ok {
		return "OOMKilled: " + who + " killed because memory ran out."
	}
	return "OOMKilled: " + who + " killed because the memory limit of " + inWords(limit) + " was reached."
}

// noLimit is more than any limit: cgroup v1 gives the largest multiple of a page.
const noLimit = 1 << 62

// limit returns the memory limit in bytes, if there is one. It may change.
func (w *Watch) limit() (bytes uint64, ok bool) {
	return readNumber(filepath.Join(w.cgroup.Path, limitOf(w.cgroup)))
}

// readNumber returns what a file of one number holds. "max" is none.
func readNumber(path string) (n uint64, ok bool) {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err = strconv.ParseUint(string(bytes.TrimSpace(content)), 10, 64)
	return n, err == nil && n < noLimit
}

func inWords(n uint64) string {
	for _, unit := range []struct {
		size uint64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		switch {
		case n >= unit.size && n%unit.size == 0:
			return fmt.Sprintf("%d %s", n/unit.size, unit.name)
		case n >= unit.size:
			return fmt.Sprintf("%.1f %s", float64(n)/float64(unit.size), unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
