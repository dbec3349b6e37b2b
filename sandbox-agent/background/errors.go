package background

import "errors"

// What a request is refused with.
var (
	ErrTooMany     = errors.New("too many processes run: end one")
	ErrIDInUse     = errors.New("a process with this id has another command")
	ErrNotFound    = errors.New("there is no such process")
	ErrNotRunning  = errors.New("the process has ended")
	ErrInputClosed = errors.New("the process takes no more input: its standard input is closed")
	ErrNoTerminal  = errors.New("the process has no terminal: start it with one to resize it")
	ErrJob         = errors.New("this is a job of the shell's own: use kill, jobs, fg or wait in a command")
	ErrClosed      = errors.New("the agent is shutting down")
)
