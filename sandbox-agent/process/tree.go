package process

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Scope says which processes belong to one command. Commands are serial, so
// that they are the descendants of Agent that began since the command did;
// what was there before, and whatever that starts, is left alone.
type Scope struct {
	// Agent is the process to which orphans fall: this one.
	Agent int
	// Shell runs the command and is killed with it, unless KeepShell or Others.
	Shell     int
	KeepShell bool
	// Spare is never killed; 0 is none. Nor is Keep, and what descends from it.
	Spare int
	Keep  int
	// Start is when the command began (Now). Mark is the last pid that was given
	// out before: among the processes of that same tick it and lower ones are
	// older.
	Start uint64
	Mark  int
	// Others turns it round: all but what Shell, which is kept, started since.
	Others bool
}

// halfPIDs is half the smallest pid_max: a larger distance is a wrap-around.
const halfPIDs = 1 << 14

func (s Scope) before(p Stat) bool {
	if p.Start != s.Start {
		return p.Start < s.Start
	}
	d := p.PID - s.Mark
	return -halfPIDs < d && d <= 0 || d > halfPIDs
}

// Victims returns which of all belong to the command, parents first.
func (s Scope) Victims(all []Stat) []Stat {
	children := map[int][]Stat{}
	for _, p := range all {
		children[p.Parent] = append(children[p.Parent], p)
	}
	var victims []Stat
	var walk func(parent int, inherited bool)
	walk = func(parent int, inherited bool) {
		for _, p := range children[parent] {
			switch {
			case p.PID == s.Spare || p.PID == s.Agent || p.PID == s.Keep:
				continue
			case p.PID == s.Shell:
				if !s.KeepShell && !s.Others {
					victims = append(victims, p)
				}
				walk(p.PID, false)
			case s.Others && parent == s.Shell && !s.before(p):
				continue
			case inherited || s.Others || !s.before(p):
				victims = append(victims, p)
				walk(p.PID, true)
			}
		}
	}
	walk(s.Agent, false)
	return victims
}

const (
	// settle is how long killed processes get between two looks at them.
	settle = time.Millisecond
	// rounds bounds the looks for new processes, and doubts those in a row that
	// find none while something forks: it may be none of the victims.
	rounds = 100
	doubts = 20
	// singly is how many rounds stop one process at a time: see stopGroups.
	singly = 3
)

// Kill ends every process of the scope, ones that fork as fast as they can
// too. It returns when they are gone, with ctx's error when one does not go (in
// an uninterruptible wait), or with an error when only such are left as take no
// signal from this user (what su started).
func (s Scope) Kill(ctx context.Context) error { return kill(ctx, s.Victims) }

// kill ends what victims picks of all processes: they are stopped, round by
// round, until a scan finds nothing new; then all are killed.
func kill(ctx context.Context, victims func(all []Stat) []Stat) error {
	if err := freeze(ctx, victims); err != nil {
		return err
	}
	for doubt := 0; ; {
		last := LastPID()
		all, err := Scan()
		if err != nil {
			return err
		}
		left, refused, state := 0, 0, byte(0)
		for _, p := range victims(all) {
			if p.Zombie() {
				continue
			}
			left, state = left+1, p.State
			if e := (Handle{p.PID, p.Start}).Signal(unix.SIGKILL); e != nil {
				refused, err = refused+1, fmt.Errorf("kill process %d: %w", p.PID, e)
			}
		}
		switch {
		case left > refused:
			doubt = 0
		case LastPID() == last || doubt == doubts:
			return err
		default: // one that forked and ended may have hidden its child from the scan
			doubt++
			continue
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of them, one in state %c, don't end: %w", left, state, ctx.Err())
		case <-time.After(settle):
		}
	}
}

// freeze stops the victims until no new one appears. It gives up after many
// rounds: killing is the better chance then.
func freeze(ctx context.Context, victims func(all []Stat) []Stat) error {
	seen, doubt := map[Handle]bool{}, 0
	for round := range rounds {
		if ctx.Err() != nil {
			return nil
		}
		last := LastPID()
		all, err := Scan()
		if err != nil {
			return err
		}
		found, fresh := victims(all), false
		if round >= singly {
			stopGroups(all, victims)
		}
		for _, p := range found {
			h := Handle{p.PID, p.Start}
			if seen[h] || p.Zombie() {
				continue
			}
			seen[h], fresh = true, true
			_ = h.Signal(unix.SIGSTOP) // Kill tells of one that takes no signals
		}
		switch {
		case fresh:
			doubt = 0
		case LastPID() == last || doubt == doubts:
			return nil
		default:
			doubt++
		}
	}
	return nil
}

// stopGroups stops the process groups of victims, in which nothing can fork
// meanwhile, and lets the others in them go on at once: a crowd that forks and
// ends faster than a scan is not caught one by one.
func stopGroups(all []Stat, victims func([]Stat) []Stat) {
	groups := map[int]bool{}
	for _, p := range victims(all) {
		if p.Group > 1 && p.Group != unix.Getpgrp() {
			groups[p.Group] = true
		}
	}
	leave := map[Handle]bool{} // stopped by someone else
	for _, p := range all {
		leave[Handle{p.PID, p.Start}] = p.State == 'T'
	}
	for group := range groups {
		_ = unix.Kill(-group, unix.SIGSTOP) // Kill tells of what takes no signals
	}
	now, err := Scan()
	if err != nil {
		now = all
	}
	for _, p := range victims(now) {
		leave[Handle{p.PID, p.Start}] = true
	}
	for _, p := range now {
		if h := (Handle{p.PID, p.Start}); groups[p.Group] && !leave[h] {
			_ = h.Signal(unix.SIGCONT) // it is another user's at most, and was not stopped
		}
	}
}
