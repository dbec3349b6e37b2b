package process

import (
	"bytes"
	"context"
	"fmt"
	"os"
)

// Family is what one process of a supervisor started: its descendants, and
// those whose parents have ended meanwhile, by a mark in the environment that
// they began with. One that began with another environment, and whose parents
// have ended, is none of it.
type Family struct {
	// Leader is the first of it; the zero value once it has ended.
	Leader int
	// Mark is NAME=value.
	Mark string
}

// Kill ends the family, as Scope.Kill does.
func (f Family) Kill(ctx context.Context) error { return kill(ctx, f.members) }

func (f Family) members(all []Stat) []Stat {
	children := map[int][]Stat{}
	for _, p := range all {
		children[p.Parent] = append(children[p.Parent], p)
	}
	var members []Stat
	seen := map[int]bool{}
	var add func(p Stat)
	add = func(p Stat) {
		if seen[p.PID] {
			return
		}
		seen[p.PID] = true
		members = append(members, p)
		for _, child := range children[p.PID] {
			add(child)
		}
	}
	for _, p := range all {
		if p.PID == f.Leader || marked(p.PID, f.Mark) {
			add(p)
		}
	}
	return members
}

// marked tells whether a process began with mark in its environment.
func marked(pid int, mark string) bool {
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false // gone, or another user's
	}
	return bytes.Contains(append([]byte{0}, environ...), []byte("\x00"+mark+"\x00"))
}
