package client

import (
	"errors"
	"mime"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/berth-dev/berth/sandbox-agent/filename"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

var (
	sha256Hex = regexp.MustCompile(`^[0-9a-f]{64}$`)
	logPath   = regexp.MustCompile(`^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+){0,7}$`)
)

// checkResult refuses values that no command can have. Strings are valid
// UTF-8 already: encoding/json sees to that.
func checkResult(r *ExecResult) error {
	switch {
	case r.ExitCode < 0 || r.ExitCode > 255:
		return badAnswer("exit code %d", r.ExitCode)
	case r.DurationMS < 0, r.OmittedBytes < 0, r.StdoutBytes < 0, r.StderrBytes < 0:
		return badAnswer("a negative count")
	case len(r.Notice) > maxMessage:
		return badAnswer("a notice of %d bytes", len(r.Notice))
	}
	r.Notice = clean(r.Notice, maxMessage)
	if r.Log == nil {
		return nil
	}
	return errors.Join(checkLog(r.Log.Stdout), checkLog(r.Log.Stderr))
}

func checkLog(l *LogFile) error {
	switch {
	case l == nil:
		return nil
	case !wire.ValidArtifactID(l.ID):
		return badAnswer("log id is malformed")
	case !logPath.MatchString(l.Path):
		return badAnswer("log path is malformed")
	case l.Size < 0, l.ExpiresIn < 0 || l.ExpiresIn > wire.LogLifetimeSeconds:
		return badAnswer("log size or expiry is impossible")
	}
	return nil
}

func checkArtifact(a *Artifact) error {
	switch {
	case !wire.ValidArtifactID(a.ID):
		return badAnswer("artifact id is malformed")
	case a.Name == "" || len(a.Name) > filename.Max || strings.ContainsAny(a.Name, "/\x00") || !utf8.ValidString(a.Name):
		return badAnswer("artifact name is malformed")
	case a.Size < 0, a.ExpiresIn < 0 || a.ExpiresIn > wire.LogLifetimeSeconds: // a log is read as an artifact
		return badAnswer("artifact size or expiry is impossible")
	case a.SHA256 != "" && !sha256Hex.MatchString(a.SHA256):
		return badAnswer("artifact digest is malformed")
	case len(a.Notice) > maxMessage:
		return badAnswer("a notice of %d bytes", len(a.Notice))
	}
	a.Notice = clean(a.Notice, maxMessage)
	return checkMIMEType(a.MIMEType)
}

func checkMIMEType(s string) error {
	if len(s) > 255 {
		return badAnswer("MIME type is too long")
	}
	// It becomes a header, of this gateway or of a store: the parser lets line ends
	// and other bytes pass.
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		return badAnswer("MIME type is not printable ASCII")
	}
	if _, _, err := mime.ParseMediaType(s); err != nil {
		return badAnswer("MIME type is malformed")
	}
	return nil
}

func checkHealth(h *Health) error {
	switch h.Status {
	case StatusOK, StatusDraining, StatusNoShell:
	default:
		return badAnswer("unknown health status")
	}
	switch h.Shell {
	case ShellBash, ShellSh, ShellNone:
	default:
		return badAnswer("unknown shell")
	}
	return nil
}
