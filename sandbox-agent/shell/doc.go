// Package shell runs commands in one persistent shell, one at a time.
//
// With bash the mechanism is a forked spare (docs/adr/0010-forked-spare-shell.md):
// before each command the resident bash forks a copy of itself that blocks on
// a pipe. When the command ends its shell (time-out, cancel, exit, set -e,
// exec, a kill), the spare goes on with the state from before that command.
//
// The protocol is out of band. The shell runs a fixed loop (loop.bash); the
// text of a command reaches it through a memory file and is evaluated, never
// spliced into source. What the shell tells comes as records on a descriptor
// that commands don't see:
//
//	S<pid>    a spare was forked
//	R<pid>    the shell with this pid is ready, its output pipes are made
//	N<pid>    the same, with the spare from before: the command was a mere
//	          call of a program
//	D<status> the command ended with this status
//	P<pid>    the spare told the shell's state, for a process that starts
//
// The order is S, R (or N), [wake], D. Standard output and error of each command are
// two fresh pipes that the shell makes (a here-string is one) and the agent
// opens through /proc, since nothing can hand a descriptor to a running bash.
// A child that outlives its command holds that command's pipes and no others:
// what it still writes never gets into a later result.
package shell
