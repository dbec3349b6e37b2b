// Package shellcases is what a session's shell must do, as data: sequences of
// commands and what each gives. The same table runs on the host, against an
// agent in a PID namespace of its own, and in the pods of a cluster. Each case
// has a container and a session of its own, in which Setup was run first, and
// the user isn't root.
package shellcases

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// Case is a sequence of commands in one session.
type Case struct {
	Name  string // what it shows; unique
	Steps Steps
}

// Steps run one after the other in the same shell.
type Steps []Step

// Step is one command and its result. What is empty must be empty, unless
// Loose says otherwise.
type Step struct {
	Run     string
	Timeout float64 // seconds; 0 for the session's default
	Stdin   string
	Cwd     string
	Env     []client.EnvVar

	Stdout string
	Stderr string // a part of it
	Code   int    // AnyCode for whatever it is
	Timed  bool   // it ran out of time
	Notice string // a part of it
	// Loose leaves stderr and notice open, and stdout too unless it is given.
	Loose bool
}

// Request asks for the step.
func (s Step) Request() client.ExecRequest {
	return client.ExecRequest{Command: s.Run, Timeout: s.Timeout, Stdin: s.Stdin, Cwd: s.Cwd, Env: s.Env}
}

// AnyCode is a Step's Code when the exit code and whether it ran out of time
// don't matter.
const AnyCode = -1

// Setup is run before each case.
const Setup = `x=kept`

// next proves that the shell still serves and remembers.
var next = Step{Run: `echo "next $x"`, Stdout: "next kept\n"}

// replaced is the notice of a command that ended its shell.
const replaced = "The session goes on as it was before this command."

// Bash returns the cases of a shell with full guarantees.
func Bash() []Case {
	return slices.Concat(streams, syntax, source, statuses, ends, state, persist, mereCalls, options, settings, trees, background, documented, traps, hostile)
}

// Check compares a result with what s wants. It returns one sentence for each
// difference.
func Check(s Step, r *client.ExecResult) (differences []string) {
	differ := func(what string, want, got any) {
		differences = append(differences, fmt.Sprintf("%s: want %#.200v, got %#.400v", what, want, got))
	}
	if s.Code != AnyCode && r.ExitCode != s.Code {
		differ("exit code", s.Code, r.ExitCode)
	}
	if s.Code != AnyCode && r.TimedOut != s.Timed {
		differ("timed_out", s.Timed, r.TimedOut)
	}
	if r.Stdout != s.Stdout && (!s.Loose || s.Stdout != "") {
		differ("stdout", s.Stdout, r.Stdout)
	}
	if !s.Loose && !partOf(s.Stderr, r.Stderr) {
		differ("stderr", s.Stderr, r.Stderr)
	}
	if !s.Loose && !partOf(s.Notice, r.Notice) {
		differ("notice", s.Notice, r.Notice)
	}
	return differences
}

// partOf: nothing is a part of nothing only.
func partOf(want, got string) bool {
	return (want == "") == (got == "") && strings.Contains(got, want)
}
