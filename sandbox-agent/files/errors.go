package files

import (
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// Kinds of refusals. Each error of this package that is no fault of the agent is
// an *Error of one of them, or one of package upload's of a body.
var (
	ErrRequest      = errors.New("bad request")
	ErrOutside      = errors.New("outside the workspace")
	ErrForbidden    = errors.New("forbidden")
	ErrNotFound     = errors.New("not found")
	ErrChanged      = errors.New("changed meanwhile")
	ErrTooLarge     = errors.New("too large")
	ErrOutOfRange   = errors.New("out of range")
	ErrNotRegular   = errors.New("not a regular file")
	ErrNotDirectory = errors.New("not a directory")
	ErrNotText      = errors.New("not text")
	ErrNoMatch      = errors.New("no match")
	ErrManyMatches  = errors.New("many matches")
	ErrNoSpace      = errors.New("no space")
)

// Error says to a caller what was refused, and what to do. It names no path but
// as a caller gives them.
type Error struct {
	Kind    error
	message string
}

func (e *Error) Error() string { return e.message }

func (e *Error) Unwrap() error { return e.Kind }

func refuse(kind error, format string, args ...any) error {
	return &Error{kind, fmt.Sprintf(format, args...)}
}

// maxShown is how much of a name a message shows.
const maxShown = 256

// quote makes a path safe to show: the end of it, if it is long.
func quote(path string) string {
	if len(path) > maxShown {
		path = "..." + path[len(path)-maxShown:]
	}
	return strconv.Quote(path)
}

// refusal maps an error of the file system, of something at path.
func refusal(err error, path string) error {
	for _, known := range []struct {
		is, kind error
		message  string
	}{
		{unix.ENOENT, ErrNotFound, "there is no %s"},
		{unix.EACCES, ErrForbidden, "the sandbox's user has no permission for %s"},
		{unix.EPERM, ErrForbidden, "the sandbox's user has no permission for %s"},
		{unix.EROFS, ErrForbidden, "%s is on a read-only file system"},
		{unix.ENOTDIR, ErrNotDirectory, "%s is not a directory"},
		{unix.EISDIR, ErrNotRegular, "%s is a directory"},
		{unix.ELOOP, ErrNotRegular, "%s became a link meanwhile"},
		{unix.ENXIO, ErrNotRegular, "%s is not a regular file"},
		{unix.ENODEV, ErrNotRegular, "%s is not a regular file"},
		{unix.EAGAIN, ErrChanged, "a process holds a lease on %s (fcntl): try again once that ends"},
		{unix.ENAMETOOLONG, ErrRequest, "the name of %s is too long"},
		{unix.EINVAL, ErrRequest, "%s can't be the name of a file here"},
		{unix.ENOSPC, ErrNoSpace, "no space is left for %s"},
		{unix.EDQUOT, ErrNoSpace, "no space is left for %s"},
		{unix.EFBIG, ErrTooLarge, "%s would be larger than its file system takes"},
	} {
		if errors.Is(err, known.is) {
			return refuse(known.kind, known.message, quote(path))
		}
	}
	return err
}
