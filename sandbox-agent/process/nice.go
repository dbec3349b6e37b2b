package process

import "golang.org/x/sys/unix"

// Nice is what all that a session runs is born with: the least. Of a processor
// that a thousand of its processes want, the agent else got a thousandth, and
// took seconds to answer or to end them.
const Nice = 19

// StandBack orders a child that leads a process group, what it started already and
// what it will start, behind this process. It fails only when they are gone.
func (c *Child) StandBack() error { return unix.Setpriority(unix.PRIO_PGRP, c.PID, Nice) }
