package process

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Nice is what all that a session runs is born with: the least. Of a processor
// that a thousand of its processes want, the agent else got a thousandth, and
// took seconds to answer or to end them.
const Nice = 19

// Confine says on which processors those children run that stand back. It comes
// before the first is started. nil: on those of this process.
func (r *Reaper) Confine(processors *unix.CPUSet) { r.processors = processors }

// StandBack orders a child that leads a process group, what it started already and
// what it will start, behind this process, and confines it: what it started already
// in the moment since its birth is not confined. It fails only for a child that is
// gone.
func (r *Reaper) StandBack(c *Child) error {
	err := unix.Setpriority(unix.PRIO_PGRP, c.PID, Nice)
	if r.processors != nil {
		err = errors.Join(err, unix.SchedSetaffinity(c.PID, r.processors))
	}
	return err
}
