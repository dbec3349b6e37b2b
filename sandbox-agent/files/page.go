package files

import (
	"encoding/base64"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// next returns the next names of a directory after last, in order, a page at
// most, and whether there are more. It reads the whole directory for that: the
// order in which a file system gives names is its own. It returns errEnough, and
// what it found, when it ran out of visits.
func (l *lister) next(dir *os.File, last string) (names []string, more bool, err error) {
	l.scans++
	if _, err := dir.Seek(0, io.SeekStart); err != nil {
		return nil, false, err
	}
	keep := func() {
		slices.Sort(names)
		if len(names) > l.page {
			names, more = names[:l.page], true
		}
	}
	for {
		if err := l.ctx.Err(); err != nil {
			return nil, false, err
		}
		const batch = 1024
		read, err := dir.Readdirnames(min(batch, l.visits+1))
		if len(read) > l.visits {
			read, err = read[:l.visits], errEnough
		}
		l.visits -= len(read)
		for _, name := range read {
			if name > last && (!more || name < names[l.page-1]) {
				names = append(names, name)
			}
		}
		if len(names) >= 2*l.page || err != nil {
			keep()
		}
		if errors.Is(err, io.EOF) {
			return names, more, nil
		}
		if err != nil {
			return names, more, err
		}
	}
}

// cursor is how far a list came: to a name, and through what is in it if done.
type cursor struct {
	names []string
	done  bool
}

// String is opaque to callers: names may be no text.
func (c cursor) String() string {
	text := "."
	if c.done {
		text = "/"
	}
	return base64.RawURLEncoding.EncodeToString([]byte(text + strings.Join(c.names, "/")))
}

func parseCursor(s string) (cursor, error) {
	if s == "" {
		return cursor{}, nil
	}
	malformed := refuse(ErrRequest, "after: give what next said of the list before")
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) < 2 || len(b) > wire.MaxPath || b[0] != '.' && b[0] != '/' || slices.Contains(b, 0) {
		return cursor{}, malformed
	}
	c := cursor{strings.Split(string(b[1:]), "/"), b[0] == '/'}
	for _, name := range c.names {
		if name == "" || name == "." || name == ".." {
			return cursor{}, malformed
		}
	}
	return c, nil
}
