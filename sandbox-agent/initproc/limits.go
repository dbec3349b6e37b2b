package initproc

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Limits are a process's resource limits. Another process of the same user may
// change them (prlimit(2)), which non-dumpable doesn't prevent: without open
// files the agent could neither accept a connection nor start a shell.
type Limits [unix.RLIMIT_RTTIME + 1]unix.Rlimit

// ReadLimits returns this process's limits.
func ReadLimits() (*Limits, error) {
	var l Limits
	for resource := range l {
		if err := unix.Prlimit(0, resource, nil, &l[resource]); err != nil {
			return nil, fmt.Errorf("read resource limit %d: %w", resource, err)
		}
	}
	return &l, nil
}

// Restore undoes what has been done to this process's limits since l was read. It
// returns an error if that can't be: nobody may raise a hard limit again, and with
// fewer open files the agent is not what it was.
func (l *Limits) Restore() error {
	now, err := ReadLimits()
	if err != nil {
		return err
	}
	for resource, was := range l {
		is := now[resource]
		if is == was {
			continue
		}
		want := unix.Rlimit{Cur: min(was.Cur, is.Max), Max: is.Max}
		if err := unix.Prlimit(0, resource, &want, nil); err != nil {
			return fmt.Errorf("restore resource limit %d: %w", resource, err)
		}
		if resource == unix.RLIMIT_NOFILE && is.Max < was.Max {
			return fmt.Errorf("a process of the session lowered the agent's limit of open files from %d to %d for good", was.Max, is.Max)
		}
	}
	return nil
}
