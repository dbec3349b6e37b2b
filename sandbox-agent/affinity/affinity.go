// Package affinity keeps what a session runs off the agent's processors, where a
// limit leaves some over (docs/adr/0015-the-agent-has-a-processor-of-its-own.md).
package affinity

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// ErrNoneLeft is returned when the session may use all processors that there are.
var ErrNoneLeft = errors.New("the container's CPU limit leaves no processor over")

// Separate restricts all threads of this process, and those to come, to processors
// that it has for itself, and returns those for what the session runs: see divide.
// Neighbours in other containers begin elsewhere.
func Separate() (session []int, err error) {
	cores, err := limit("/proc")
	if err != nil {
		return nil, err
	}
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return nil, fmt.Errorf("read which processors are allowed: %w", err)
	}
	all := list(&allowed)
	session, own := divide(all, cores, rand.IntN(len(all)))
	if len(own) == 0 {
		return nil, ErrNoneLeft
	}
	return session, restrict(Set(own))
}

// restrict restricts every thread. A thread has the processors of the one that made
// it, which may itself not have been restricted yet: so until nothing is to be done.
func restrict(own *unix.CPUSet) error {
	for changed := true; changed; {
		changed = false
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, thread := range threads {
			tid, err := strconv.Atoi(thread.Name())
			if err != nil {
				return err
			}
			var has unix.CPUSet
			if err := unix.SchedGetaffinity(tid, &has); err == nil && has == *own {
				continue
			}
			changed = true
			if err := unix.SchedSetaffinity(tid, own); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("restrict thread %d: %w", tid, err)
			}
		}
	}
	return nil
}

// Set is a list of processors as the kernel takes it.
func Set(processors []int) *unix.CPUSet {
	var s unix.CPUSet
	for _, p := range processors {
		s.Set(p)
	}
	return &s
}

// list is the reverse of Set.
func list(s *unix.CPUSet) []int {
	var processors []int
	for p := 0; len(processors) < s.Count(); p++ {
		if s.IsSet(p) {
			processors = append(processors, p)
		}
	}
	return processors
}
