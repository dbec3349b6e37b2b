package wire

import "time"

// Bounds of background processes.
const (
	// MaxProcesses is how many processes are listed at a time. The oldest that
	// has ended makes room; when all run, no more can be started.
	MaxProcesses = 64
	// ProcessOutputBytes is how much of a process's output is kept: the newest.
	ProcessOutputBytes = 4 << 20
	// DefaultOutputChunk and MaxOutputChunk bound one read of it, before encoding.
	DefaultOutputChunk = 64 << 10
	MaxOutputChunk     = 512 << 10
	// MaxOutputWait bounds a long poll, in seconds.
	MaxOutputWait = 60
	// MaxTerminal bounds rows and columns of a terminal.
	MaxTerminal = 4096
	// MaxProcessCommand is how many bytes of its command a Process shows.
	MaxProcessCommand = 1 << 10
)

// Kinds of Process.
const (
	// KindProcess was started by POST /v1/processes.
	KindProcess = "process"
	// KindJob is what a command left behind (cmd &): what it writes after its
	// call has ended can be read, but it takes neither input nor signals here:
	// it is the shell's own.
	KindJob = "job"
)

// ProcessRequest is the body of POST /v1/processes. The process starts when
// the commands before it are done, with the shell's working directory, umask
// and exported variables, in a session and process group of its own.
type ProcessRequest struct {
	// Command is shell source, not empty, without NUL.
	Command string `json:"command"`
	// ID makes the start idempotent: a process that has it already is the
	// answer, if its command is the same. 1 to 128 of A-Z a-z 0-9 . _ -; without
	// it the agent chooses one.
	ID string `json:"id,omitempty"`
	// Cwd and Env act as if the command began with cd and export. They don't
	// change the shell.
	Cwd string   `json:"cwd,omitempty"`
	Env []EnvVar `json:"env,omitempty"`
	// Terminal gives the process a terminal. Without it, its standard input is a
	// pipe, and its standard output and error are one pipe.
	Terminal *Terminal `json:"terminal,omitempty"`
}

// Terminal is the size of one; 0 is the default, 24 by 80.
type Terminal struct {
	Rows int `json:"rows,omitempty"`
	Cols int `json:"cols,omitempty"`
}

// Process is one background process.
type Process struct {
	ID   string `json:"id"`
	Kind string `json:"kind"`
	// Command is its beginning, at most MaxProcessCommand bytes.
	Command  string `json:"command"`
	Terminal bool   `json:"terminal,omitempty"`
	Running  bool   `json:"running"`
	// ExitCode is there once it has ended, 128+n for signal n; a job has none.
	ExitCode *int      `json:"exit_code,omitempty"`
	Started  time.Time `json:"started"`
	// Ended is there once it has ended.
	Ended *time.Time `json:"ended,omitempty"`
	// Cancelled says that DELETE /v1/processes/{id} ended it.
	Cancelled bool `json:"cancelled,omitempty"`
	// OutputStart and OutputEnd are the offsets between which output is kept.
	OutputStart int64 `json:"output_start"`
	OutputEnd   int64 `json:"output_end"`
	// Notice says what else happened to it.
	Notice string `json:"notice,omitempty"`
}

// ProcessList is the answer of GET /v1/processes, the oldest first.
type ProcessList struct {
	Processes []Process `json:"processes"`
}

// ProcessOutput is the answer of GET /v1/processes/{id}/output with the query
// offset (bytes from the start; negative: from the end; default 0), limit
// (bytes; 0 is DefaultOutputChunk, more than MaxOutputChunk is that) and wait
// (seconds to wait for output beyond offset, or the end; more than
// MaxOutputWait is that).
type ProcessOutput struct {
	// Output has invalid UTF-8 replaced by U+FFFD. It ends at the border of a
	// character, and holds one at least when there is one: a limit may be
	// exceeded by 3 bytes for that.
	Output string `json:"output"`
	// Offset is where Output begins: later than asked when older output is gone.
	// NextOffset is where to go on.
	Offset     int64 `json:"offset"`
	NextOffset int64 `json:"next_offset"`
	Running    bool  `json:"running"`
	ExitCode   *int  `json:"exit_code,omitempty"`
}

// ProcessInput is the body of POST /v1/processes/{id}/input: any of its fields.
type ProcessInput struct {
	Data string `json:"data,omitempty"`
	// EOF closes standard input after Data; at a terminal it types the end-of-file
	// character.
	EOF bool `json:"eof,omitempty"`
	// Terminal resizes the terminal, before Data.
	Terminal *Terminal `json:"terminal,omitempty"`
}

// ProcessInputResult says how many bytes of Data were taken: fewer than all
// when the process doesn't read.
type ProcessInputResult struct {
	Written int `json:"written"`
}

// ProcessSignal is the body of POST /v1/processes/{id}/signal. Signal goes to
// the process's group; KILL to all that it started, also when it has ended.
type ProcessSignal struct {
	// Signal is a name with or without SIG (TERM), or a number as text (15).
	Signal string `json:"signal"`
}

// Activity is the answer of GET /v1/activity.
type Activity struct {
	// Calls under way: commands that run, that wait, and all others.
	Running int `json:"running"`
	Queued  int `json:"queued"`
	Other   int `json:"other"`
	// Processes that run; they count as activity if the session says so.
	Processes int `json:"processes"`
	// IdleMS is for how long nothing that counts was under way; 0 while
	// something is, and never longer than the agent lives.
	IdleMS   int64 `json:"idle_ms"`
	Quiesced bool  `json:"quiesced"`
}

// Quiesce is the body of POST /v1/quiesce: if the session was idle for IdleMS,
// it takes no more calls (410 from then on, until the container ends). The
// answer is an Activity, whose Quiesced says which.
type Quiesce struct {
	IdleMS int64 `json:"idle_ms"`
}

// Parameters of GET /v1/processes/{id}/output.
const (
	OutputOffset = "offset"
	OutputLimit  = "limit"
	OutputWait   = "wait"
)

// What follows /v1/processes/{id}.
const (
	ProcessOutputPath = "/output"
	ProcessInputPath  = "/input"
	ProcessSignalPath = "/signal"
)
