// Package background keeps a session's background processes: those that were
// asked for, and what commands left behind (jobs).
//
// A process is started by way of a supervisor (package supervise), in the turn
// of the command queue and where the shell is then. Its output goes through one
// pipe, or a terminal, into a ring on disk, from which it is read by absolute
// offset. For each process there are two goroutines while it runs, and no more
// memory than one of them needs to carry output over.
package background
