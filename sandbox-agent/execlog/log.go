package execlog

import (
	"container/list"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// Names of streams.
const (
	Stdout = "stdout"
	Stderr = "stderr"
)

// Command makes the logs of one command's streams. A nil Command makes none.
type Command struct {
	store *Store
	limit int64

	mu   sync.Mutex
	name string
	logs map[string]*Log
}

// Command returns what makes the logs of a command. limit is for all logs of
// the session together, in bytes.
func (s *Store) Command(limit int64) *Command { return &Command{store: s, limit: limit} }

// Open makes the log of a stream, once. One that could not be made takes what is
// written and keeps nothing; Finish says so.
func (c *Command) Open(stream string) *Log {
	<-c.store.cleared
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.logs == nil {
		c.name, c.logs = newName(), map[string]*Log{}
	}
	l := &Log{store: c.store, limit: c.limit, name: c.name + "." + stream}
	c.logs[stream] = l
	if l.file, l.failure = c.store.dir.create(l.name); l.failure == nil {
		l.failure = unix.Fstat(int(l.file.Fd()), &l.made)
	}
	return l
}

// Finish ends the logs, when nothing more is written, and returns where they can
// be read. notice says what is missing from them. Repeating it does nothing.
func (c *Command) Finish() (found *wire.ExecLog, notice string) {
	if c == nil {
		return nil, ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var notices []string
	finish := func(stream string) *wire.LogFile {
		l := c.logs[stream]
		if l == nil {
			return nil
		}
		file, notice := l.finish()
		if notice != "" && !slices.Contains(notices, notice) {
			notices = append(notices, notice)
		}
		return file
	}
	stdout, stderr := finish(Stdout), finish(Stderr)
	c.logs = nil
	if stdout != nil || stderr != nil {
		found = &wire.ExecLog{Stdout: stdout, Stderr: stderr}
	}
	return found, strings.Join(notices, " ")
}

// Log is the whole of one stream, up to where its room or the disk ended. It is not safe
// for concurrent use.
type Log struct {
	store   *Store
	limit   int64
	name    string
	file    *os.File // nil when it could not be made
	made    unix.Stat_t
	size    int64
	failure error // why it is not the whole

	id      string // once it is finished
	expires time.Time
	place   *list.Element // nil once it was removed
}

var errFull = errors.New("the session's logs have reached their limit")

// Append keeps what there is room for. It does not fail: a command's output is
// not lost with its log.
func (l *Log) Append(p []byte) {
	if l.failure != nil {
		return
	}
	room := l.store.reserve(int64(len(p)), l.limit)
	n, err := 0, error(nil)
	if room > 0 {
		n, err = l.file.Write(p[:room])
	}
	l.size += int64(n)
	if left := room - int64(n); left > 0 {
		l.store.unreserve(left)
	}
	switch {
	case err != nil:
		l.failure = cause(err)
	case n < len(p):
		l.failure = errFull
	}
}

// Path is where commands find the log, wherever they are: absolute, unless the
// workspace has a name that is too long to tell; empty when there is none.
func (l *Log) Path() string {
	if l.size == 0 {
		return ""
	}
	return path.Join(l.store.dir.name, l.relative())
}

func (l *Log) relative() string { return path.Join(hidden, logs, l.name) }

// Size is how many bytes it holds, and Truncated whether there were more.
func (l *Log) Size() int64     { return l.size }
func (l *Log) Truncated() bool { return l.failure != nil }

// finish makes the log readable. One without a byte is removed.
func (l *Log) finish() (*wire.LogFile, string) {
	if l.size == 0 {
		if l.file != nil {
			l.store.dir.remove(l.name, l.made)
			l.file.Close()
		}
		return nil, fmt.Sprintf("No log of the whole output could be kept: %v.", l.failure)
	}
	notice := ""
	if l.failure != nil {
		notice = fmt.Sprintf("%s ends after %d bytes: %v.", l.Path(), l.size, l.failure)
	}
	if err := l.store.finish(l); err != nil {
		return nil, fmt.Sprintf("The log of the whole output can't be read: %v.", err)
	}
	return &wire.LogFile{ID: l.id, Path: l.relative(), Size: l.size, Truncated: l.failure != nil, ExpiresIn: wire.LogLifetimeSeconds}, notice
}

// cause drops the name from an error of writing.
func cause(err error) error {
	var pathError *os.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}
