package shell

import (
	"context"
	"errors"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/execlog"
	"github.com/berth-dev/berth/sandbox-agent/output"
)

// Command is what to run.
type Command struct {
	Text  string
	Cwd   string   // act as if the command began with cd, unless empty
	Env   []string // NAME=value; act as if it began with export
	Stdin string
	// Timeout runs from the command's start.
	Timeout time.Duration
	// OutputBytes is how much of each stream is kept.
	OutputBytes int
	// Logs makes the logs of streams that are longer. Nil makes none.
	Logs *execlog.Command
	// Turn is called when nothing is left to wait for but it, before the command
	// begins. Its error is Run's, and nothing ran. It may be nil.
	Turn func(ctx context.Context) error
	// Follower is handed the output as it is read. It may be nil.
	Follower Follower
}

// Follower reads along. Its methods are called by a goroutine for each stream;
// while one blocks, so does the command once its pipe is full.
type Follower interface {
	// Began says that the command has begun and takes its time. It may come
	// twice, and not at all.
	Began()
	// Output takes what the command wrote to stream (wire.FrameStdout,
	// wire.FrameStderr), in order. p is valid during the call.
	Output(stream byte, p []byte)
}

// Result is what a command did.
type Result struct {
	Stdout, Stderr output.Stream
	ExitCode       int
	Duration       time.Duration
	TimedOut       bool
	// Notice says what was lost since the result before, if anything.
	Notice string

	streams *streams
}

// Deliver hands the follower what it has not had yet, and returns when it has
// all. The next command doesn't wait for that.
func (r *Result) Deliver() {
	if r.streams != nil {
		r.streams.stdout.deliver()
		r.streams.stderr.deliver()
	}
}

// killed is the exit code of a command that was killed by time-out or cancel.
const killed = 128 + 9

// killTime bounds the kill of a command's process tree.
const killTime = 4500 * time.Millisecond

// interpreter runs one command at a time. ctx cancels a command, which is a
// result, not an error.
type interpreter interface {
	run(ctx context.Context, c Command) (Result, error)
	// setenv adds to the environment of new shells, and replaces an idle one if
	// restart.
	setenv(env []string, restart bool) error
	// snapshot tells what a process needs to go on where the shell is.
	snapshot(ctx context.Context) (snapshot, error)
	close()
}

// ErrNoShell is returned when the image has neither bash nor sh.
var ErrNoShell = errors.New("the image has neither bash nor sh")

// ErrQueueFull is returned when too many commands wait.
var ErrQueueFull = errors.New("too many commands wait")

// ErrClosed is returned once the shell was closed.
var ErrClosed = errors.New("the shell is closed")
