package process

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

// Scope says which processes belong to one command. Commands are serial, so
// that they are the descendants of Agent that began since the command did;
// what was there before, and whatever that starts, is left alone.
type Scope struct {
	// Agent is the process to which orphans fall: this one.
	Agent int
	// Shell runs the command and is killed with it.
	Shell int
	// Spare is never killed; 0 is none.
	Spare int
	// Start is when the command began (Now). Mark is the last pid that was given
	// out before: among the processes of that same tick it and lower ones are
	// older.
	Start uint64
	Mark  int
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
			case p.PID == s.Spare || p.PID == s.Agent:
				continue
			case p.PID == s.Shell:
				victims = append(victims, p)
				walk(p.PID, false)
			case inherited || !s.before(p):
				victims = append(victims, p)
				walk(p.PID, true)
			}
		}
	}
	walk(s.Agent, false)
	return victims
}

// settle is how long killed processes get between two looks at them.
const settle = time.Millisecond

// Kill ends every process of the scope, ones that fork as fast as they can
// too. It returns when they are gone, with ctx's error when one does not go (in
// an uninterruptible wait), or with that of signalling one when only such are
// left.
func (s Scope) Kill(ctx context.Context) error { return kill(ctx, s.Victims) }

// kill ends what victims picks of all processes: they are stopped, round by
// round, until a scan finds nothing new; then all are killed.
func kill(ctx context.Context, victims func(all []Stat) []Stat) error {
	if err := freeze(ctx, victims); err != nil {
		return err
	}
	for {
		all, err := Scan()
		if err != nil {
			return err
		}
		left, refused := 0, 0
		for _, p := range victims(all) {
			if p.Zombie() {
				continue
			}
			left++
			if e := (Handle{p.PID, p.Start}).Signal(unix.SIGKILL); e != nil {
				refused, err = refused+1, e
			}
		}
		if left == refused {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(settle):
		}
	}
}

// freeze stops the victims until no new one appears. It gives up after many
// rounds: killing is the better chance then.
func freeze(ctx context.Context, victims func(all []Stat) []Stat) error {
	const rounds = 100
	seen := map[Handle]bool{}
	for range rounds {
		if ctx.Err() != nil {
			return nil
		}
		all, err := Scan()
		if err != nil {
			return err
		}
		fresh := false
		for _, p := range victims(all) {
			h := Handle{p.PID, p.Start}
			if seen[h] || p.Zombie() {
				continue
			}
			seen[h], fresh = true, true
			_ = h.Signal(unix.SIGSTOP) // Kill tells of one that takes no signals
		}
		if !fresh {
			return nil
		}
	}
	return nil
}
