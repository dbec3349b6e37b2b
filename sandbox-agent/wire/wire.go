// Package wire holds what travels between the agent and its callers: routes,
// bodies, errors and the bounds both sides rely on. It imports nothing but the
// standard library, so that the client stays light. docs/agent.md is the same
// contract in prose.
//
// Conventions: JSON in snake_case, sizes in bytes, time-outs in seconds,
// durations that were measured in milliseconds.
package wire

// Port is where an agent in a pod listens.
const Port = 8090

// Routes. The id of a command, an artifact or a process follows its path, and
// what is asked of a process follows its id.
const (
	SessionPath   = "/v1/session"
	ExecPath      = "/v1/exec"
	HealthPath    = "/v1/health"
	ArtifactsPath = "/v1/artifacts"
	FilesPath     = "/v1/files"
	ProcessesPath = "/v1/processes"
	ActivityPath  = "/v1/activity"
	QuiescePath   = "/v1/quiesce"
)

// Bounds of the protocol. Session limits (Limits) may lower what they govern.
const (
	// MaxExecBody bounds the body of POST /v1/exec, of POST /v1/processes and of
	// a process's input.
	MaxExecBody = 1 << 20
	// MaxSessionBody bounds the body of PUT /v1/session.
	MaxSessionBody = 1 << 20
	// MaxSmallBody bounds every other request body.
	MaxSmallBody = 16 << 10
	// MaxResult bounds an encoded ExecResult.
	MaxResult = 10 << 20
	// QueueLength is how many commands may wait behind the running one.
	QueueLength = 64
	// MaxArtifacts is how many artifacts an agent holds at a time.
	MaxArtifacts = 128
	// CopiedArtifact is the largest file that is copied at export, whatever that
	// costs, and always carries a SHA-256.
	CopiedArtifact = 8 << 20
	// MaxPath bounds the length of a file's path, and of a cwd.
	MaxPath = 4096
)

// Defaults of Limits, and their bounds.
const (
	DefaultCommandTimeout   = 60
	MaxCommandTimeout       = 300
	DefaultOutputBytes      = 256 << 10
	MaxOutputBytes          = 4 << 20
	DefaultArtifactBytes    = 8 << 20
	ArtifactLifetimeSeconds = 300
	// DefaultArtifactTotalBytes has room for MaxArtifacts of DefaultArtifactBytes.
	DefaultArtifactTotalBytes = 1 << 30
	DefaultLogBytes           = 1 << 30
	LogLifetimeSeconds        = 3600
)

// Session is the body of PUT /v1/session: which Sandbox this agent serves.
// Binding again with the same UID is idempotent: limits are replaced, Env is
// taken by the next shell that starts. Another UID is refused.
type Session struct {
	UID    string   `json:"uid"`
	Env    []EnvVar `json:"env,omitempty"`
	Limits Limits   `json:"limits"`
	// BackgroundIsActivity makes a background process that runs count as
	// activity.
	BackgroundIsActivity bool `json:"background_is_activity,omitempty"`
	// FileRoots are directories beside the workspace that the file tools reach:
	// absolute, cleaned, at most MaxFileRoots. Binding again replaces them.
	FileRoots []string `json:"file_roots,omitempty"`
}

// EnvVar is one environment variable, with a literal value.
type EnvVar struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Limits are what template and quota grant. A zero field means its default.
type Limits struct {
	// CommandTimeoutDefault and CommandTimeoutMax are seconds (60, 300).
	CommandTimeoutDefault int `json:"command_timeout_default,omitempty"`
	CommandTimeoutMax     int `json:"command_timeout_max,omitempty"`
	// OutputBytes is the most of one stream that a result may carry inline
	// (4 MiB). A request that asks for nothing gets the smaller of this and
	// 256 KiB.
	OutputBytes int `json:"output_bytes,omitempty"`
	// ArtifactBytes is the largest file that may be exported (8 MiB).
	ArtifactBytes int64 `json:"artifact_bytes,omitempty"`
	// ArtifactTotalBytes is the most that the copies and archives of all artifacts
	// take together on disk (1 GiB).
	ArtifactTotalBytes int64 `json:"artifact_total_bytes,omitempty"`
	// LogBytes is the most that the logs of all commands take together on disk
	// (1 GiB).
	LogBytes int64 `json:"log_bytes,omitempty"`
	// UploadBytes is the largest file that may be uploaded; zero is no limit.
	UploadBytes int64 `json:"upload_bytes,omitempty"`
}

// WithDefaults returns l with each zero field replaced by its default.
func (l Limits) WithDefaults() Limits {
	if l.CommandTimeoutMax == 0 {
		l.CommandTimeoutMax = max(MaxCommandTimeout, l.CommandTimeoutDefault)
	}
	if l.CommandTimeoutDefault == 0 {
		l.CommandTimeoutDefault = min(DefaultCommandTimeout, l.CommandTimeoutMax)
	}
	if l.OutputBytes == 0 {
		l.OutputBytes = MaxOutputBytes
	}
	if l.ArtifactBytes == 0 {
		l.ArtifactBytes = DefaultArtifactBytes
	}
	if l.ArtifactTotalBytes == 0 {
		l.ArtifactTotalBytes = DefaultArtifactTotalBytes
	}
	if l.LogBytes == 0 {
		l.LogBytes = DefaultLogBytes
	}
	return l
}

// ExecRequest is the body of POST /v1/exec.
type ExecRequest struct {
	// Command is shell source, not empty, without NUL.
	Command string `json:"command"`
	// Timeout in seconds; 0 or less is the session's default, more than its
	// maximum is that maximum. It runs from the command's start.
	Timeout float64 `json:"timeout,omitempty"`
	// ID names the command for DELETE /v1/exec/{id}: 1 to 128 of A-Z a-z 0-9 . _ -
	ID string `json:"id,omitempty"`
	// Cwd and Env act as if the command began with cd and export.
	Cwd string   `json:"cwd,omitempty"`
	Env []EnvVar `json:"env,omitempty"`
	// Stdin is the command's standard input; without it, it is empty.
	Stdin string `json:"stdin,omitempty"`
	// MaxOutputBytes is how much of each stream the result carries inline;
	// 0 or less is the default, more than Limits.OutputBytes is that.
	MaxOutputBytes int `json:"max_output_bytes,omitempty"`
	// NoLog leaves output that doesn't fit the result unkept.
	NoLog bool `json:"no_log,omitempty"`
	// DetachAfter is how many seconds after the request came its answer comes at
	// the latest: 202 with an ExecState if the command hasn't ended by then. It
	// goes on, whatever becomes of the connection, and its result is kept. 0 is
	// never; more needs an ID, and an answer that is not in frames.
	DetachAfter float64 `json:"detach_after,omitempty"`
}

// ExitKilled is the exit code of what was killed: 128 and SIGKILL.
const ExitKilled = 137

// ExecResult is what a command did. Its encoding never exceeds MaxResult, even
// when it is carried twice (structured, and as JSON text) in one MCP answer.
type ExecResult struct {
	// Stdout and Stderr are what was written, with invalid UTF-8 replaced by
	// U+FFFD. When Truncated they are head and tail with a line between.
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	// ExitCode is the shell's: 128+n for signal n, ExitKilled for a command that
	// was killed by time-out or cancel.
	ExitCode   int   `json:"exit_code"`
	DurationMS int64 `json:"duration_ms"`
	TimedOut   bool  `json:"timed_out,omitempty"`
	Truncated  bool  `json:"truncated,omitempty"`
	// OmittedBytes is how many bytes of both streams the result leaves out.
	OmittedBytes int64 `json:"omitted_bytes,omitempty"`
	// StdoutBytes and StderrBytes count what was written.
	StdoutBytes int64 `json:"stdout_bytes"`
	StderrBytes int64 `json:"stderr_bytes"`
	// Log holds the whole of each stream that the result leaves bytes out of.
	Log *ExecLog `json:"log,omitempty"`
	// Notice says what was lost when a shell was replaced.
	Notice string `json:"notice,omitempty"`
}

// ExecLog is where the whole output of a command is.
type ExecLog struct {
	Stdout *LogFile `json:"stdout,omitempty"`
	Stderr *LogFile `json:"stderr,omitempty"`
}

// LogFile is one stream, byte by byte. It is read like an artifact, at
// GET /v1/artifacts/{id}, and takes no artifact's place.
type LogFile struct {
	ID string `json:"id"`
	// Path is where commands find it, relative to the workspace.
	Path string `json:"path"`
	Size int64  `json:"size"`
	// Truncated says that the stream was longer: the limit or the disk was full.
	Truncated bool `json:"truncated,omitempty"`
	// ExpiresIn is how many seconds it stays readable.
	ExpiresIn int `json:"expires_in"`
}

// FileType is the content type of an uploaded file, and FileName the parameter
// of POST /v1/files that holds its name: the only one, and needed.
const (
	FileType = "application/octet-stream"
	FileName = "name"
)

// File is what was uploaded.
type File struct {
	// Path is where it lies, absolute.
	Path string `json:"path"`
	// Name is what it is called there.
	Name string `json:"name"`
	Size int64  `json:"size"`
}

// Shells, as Health reports them.
const (
	ShellBash = "bash" // full guarantees
	ShellSh   = "sh"   // cwd and exported variables persist, nothing else
	ShellNone = "none" // nothing can run in this image
)

// Statuses, as Health reports them.
const (
	StatusOK       = "ok"
	StatusDraining = "draining"
	StatusNoShell  = "no_shell"
)

// Health is the answer of GET /v1/health: 200 with StatusOK, else 503.
type Health struct {
	Status string `json:"status"`
	Shell  string `json:"shell"`
	Bound  bool   `json:"bound"`
}

// Environment variables that configure an agent in a pod. No variable whose
// name begins with EnvPrefix reaches a shell.
const (
	EnvPrefix     = "BERTH_"
	EnvPodUID     = "BERTH_POD_UID"
	EnvNamespace  = "BERTH_NAMESPACE"
	EnvPublicKeys = "BERTH_PUBLIC_KEYS" // a JWK Set of Ed25519 keys
)
