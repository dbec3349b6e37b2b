package shell

import (
	"fmt"
	"os"
	"time"
)

// remembered is what a shell told of itself, for one that is started when it and
// its spare are gone.
type remembered struct {
	state string    // source that restores umask, exports and the directory's name
	dir   string    // empty: nothing is remembered
	at    time.Time // when a shell was asked last
	after int       // commands that may have changed it since
}

const (
	// rememberEvery bounds how often a shell is asked. It is asked after an answer
	// has gone out; only a caller that sends its next command at once waits for it.
	rememberEvery = 100 * time.Millisecond
	// maxRemembered bounds what is kept, in bytes.
	maxRemembered = 1 << 20
)

// remember asks the spare of a shell that is ready.
func (b *bash) remember(l *life) {
	if l.asked == l.spare.PID {
		return // the command before was a mere call
	}
	if l.counted != l.spare.PID {
		l.counted = l.spare.PID
		b.memory.after++
	}
	if time.Since(b.memory.at) < rememberEvery {
		return
	}
	l.asked, b.memory.at = l.spare.PID, time.Now()
	dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", l.main.PID))
	if err != nil {
		return
	}
	if state, err := l.ask(); err == nil && len(state) <= maxRemembered {
		b.memory = remembered{state: state, dir: dir, at: b.memory.at}
	}
}

// in returns the directory to start in: the one remembered, if it is still there.
func (r remembered) in(initial string) string {
	if info, err := os.Stat(r.dir); err == nil && info.IsDir() {
		return r.dir
	}
	return initial
}

// lost says what a new shell doesn't have.
func (r remembered) lost() string {
	const gone = "variables, functions, the working directory and background jobs are lost"
	switch {
	case r.dir == "":
		return gone
	case r.after == 0:
		return "variables and functions that were not exported and background jobs are lost; working directory and exports are restored"
	}
	return fmt.Sprintf("variables and functions that were not exported and background jobs are lost; "+
		"working directory and exports are restored as they were %d commands before", r.after)
}
