package shell

import (
	"cmp"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/process"
)

// exposure is what a look at the session's processes from outside of its turn
// goes by: the shell's own, and those of the command that runs, if one has run for
// a while. A stale one makes no more than a worse choice. Nobody asks for a nil one.
type exposure struct{ current atomic.Pointer[process.Scope] }

// idle says which processes are the shell's own.
func (e *exposure) idle(shell, spare int) {
	e.runs(process.Scope{Agent: os.Getpid(), Shell: shell, Spare: spare, KeepShell: true})
}

// runs says which processes are a command's.
func (e *exposure) runs(command process.Scope) {
	if e != nil {
		e.current.Store(&command)
	}
}

// KillBiggest ends the process that holds most memory, and waits for that: one of
// the command that runs, unless all of its are small against limit (bytes); else
// one that an earlier command or a background process left. It calls dying just
// before. The shell itself goes only as a command's. It returns false if there
// was nothing worth it.
func (s *Shell) KillBiggest(limit uint64, dying func()) bool {
	const small, useless = 10, 100 // a tenth, and a hundredth
	all, err := process.Scan()
	if err != nil {
		return false
	}
	scope := s.config.exposure.current.Load()
	if scope == nil { // no shell was ready yet
		scope = &process.Scope{Agent: os.Getpid()}
	}
	victim, size := s.biggest(s.members(*scope, all))
	if size < limit/small {
		rest := process.Scope{Agent: scope.Agent, Shell: scope.Shell, Spare: scope.Spare, KeepShell: true}
		if other, more := s.biggest(rest.Victims(all)); more > size {
			victim, size = other, more
		}
	}
	if size <= limit/useless {
		return false
	}
	pin, err := process.NewPin(victim.PID)
	if err != nil {
		return false
	}
	defer pin.Release()
	if !victim.Alive() {
		return false
	}
	dying()
	const patience = time.Second
	return pin.Kill() == nil && pin.Ended(patience)
}

// members returns the processes of the command that runs, none if none does.
func (s *Shell) members(scope process.Scope, all []process.Stat) []process.Stat {
	if scope.KeepShell || scope.Shell == 0 {
		return nil
	}
	return scope.Victims(all)
}

// biggest returns the process whose end sets most memory free.
func (s *Shell) biggest(of []process.Stat) (found process.Handle, size uint64) {
	type candidate struct {
		process.Handle
		most uint64
	}
	var candidates []candidate
	supervisor := s.config.supervisor()
	for _, p := range of {
		if h := (process.Handle{PID: p.PID, Start: p.Start}); !p.Zombie() && p.PID != supervisor {
			candidates = append(candidates, candidate{h, h.Resident()})
		}
	}
	slices.SortFunc(candidates, func(a, b candidate) int { return cmp.Compare(b.most, a.most) })
	for _, c := range candidates {
		if c.most <= size {
			break
		}
		if private := c.Private(); private > size {
			found, size = c.Handle, private
		}
	}
	return found, size
}
