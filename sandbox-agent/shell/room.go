package shell

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/process"
)

// stuckTime is how long a shell may take to be ready, or a command to end, before
// the agent looks whether the process table is full: bash tries to fork again
// for much longer. A command can leave processes behind that fork without end,
// and the session would be dead for as long as it lives.
const stuckTime = time.Second

// room is what may be killed so that a shell is made ready in a full process
// table, the most blamable first.
type room struct {
	scopes []process.Scope
	bash   *bash
}

// room returns what may go for the shell of l, or for one that doesn't start if
// that is nil: what the last command left behind, then what all commands did.
func (b *bash) room(l *life) *room {
	all := process.Scope{Agent: os.Getpid(), Keep: b.config.supervisor()}
	if l == nil {
		return &room{[]process.Scope{all}, b}
	}
	all.Shell, all.KeepShell, all.Spare = l.main.PID, true, l.spare.PID
	last := all
	last.Start, last.Mark = b.tick, l.mark
	return &room{[]process.Scope{last, all}, b}
}

// make kills what comes next if the process table is full. It returns whether
// that was done.
func (r *room) make() bool {
	if len(r.scopes) == 0 || !r.bash.config.Reaper.Full() {
		return false
	}
	r.bash.clear(r.scopes[0])
	r.scopes = r.scopes[1:]
	return true
}

func (b *bash) clear(scope process.Scope) { b.note(clearScope(scope)) }

// makeRoom lets a command that runs have the room that others' leftovers take,
// if the process table is full and most of it is theirs. It says what it did.
func (c Config) makeRoom(command process.Scope) (notice string) {
	if !c.Reaper.Full() {
		return ""
	}
	others := command
	others.Others, others.Keep = true, c.supervisor()
	if all, err := process.Scan(); err != nil || len(others.Victims(all)) <= len(all)/2 {
		return ""
	}
	return clearScope(others)
}

// clearScope kills a scope and says so.
func clearScope(scope process.Scope) (notice string) {
	const cleared = "The limit of processes was reached: what commands had left running was killed."
	if err := kill(scope); err != nil {
		return cleared + " " + mayRun(err)
	}
	return cleared
}

func kill(scope process.Scope) error {
	ctx, cancel := context.WithTimeout(context.Background(), killTime)
	defer cancel()
	return scope.Kill(ctx)
}

// mayRun says what came of a kill that failed.
func mayRun(err error) string { return fmt.Sprintf("Some processes may still run: %v.", err) }
