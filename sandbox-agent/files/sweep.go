package files

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/openat"
	"github.com/berth-dev/berth/sandbox-agent/upload"
)

const (
	// sweepEvery is how often a directory is searched, at most, for what a killed agent
	// left there; sweptKept is how many are remembered, and sweepNames how many names
	// of one are read: a write doesn't wait for long.
	sweepEvery = 10 * time.Minute
	sweptKept  = 256
	sweepNames = 10_000
)

// sweeps knows when directories were searched.
type sweeps struct {
	now func() time.Time

	mu    sync.Mutex
	swept map[swept]time.Time
}

type swept struct{ device, inode uint64 }

// due tells whether a directory is to be searched, and remembers that it is.
func (s *sweeps) due(d swept) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if last, ok := s.swept[d]; ok && now.Sub(last) < sweepEvery {
		return false
	}
	if len(s.swept) >= sweptKept {
		clear(s.swept) // at worst, they are searched once more
	}
	s.swept[d] = now
	return true
}

// sweep removes what a killed agent left in the directory that a write is about to
// use, if that may be read.
func (s *sweeps) sweep(dir int) {
	var is unix.Stat_t
	if unix.Fstat(dir, &is) != nil || !s.due(swept{is.Dev, is.Ino}) {
		return
	}
	f, err := openat.Directory(dir, ".")
	if err != nil {
		return
	}
	defer f.Close()
	upload.Sweep(f, s.now(), sweepNames)
}
