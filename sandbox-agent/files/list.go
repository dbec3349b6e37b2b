package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/filename"
	"github.com/berth-dev/berth/sandbox-agent/openat"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// Listing says what to list: see the parameters of wire.ListPath.
type Listing struct {
	Depth  int
	Glob   string
	Limit  int // entries, at least 1
	Hidden bool
	After  string
}

// List lists the directory that path leads to. It follows no link below it.
func (r *Reach) List(ctx context.Context, path string, want Listing) (wire.FileList, error) {
	return r.list(ctx, path, want, bounds{visits: wire.MaxListVisited, page: 4096, matching: maxMatching})
}

// maxMatching is what a list spends on its pattern, in steps through paths: some
// seconds of a processor with the worst of patterns, and far more than 200,000 paths
// take with any that is in use.
const maxMatching = 100_000_000

// bounds are how many names a list reads, and holds of each directory, and what it
// spends on its pattern.
type bounds struct{ visits, page, matching int }

func (r *Reach) list(ctx context.Context, path string, want Listing, b bounds) (wire.FileList, error) {
	pattern, err := parseGlob(want.Glob)
	if err != nil {
		return wire.FileList{}, err
	}
	after, err := parseCursor(want.After)
	if err != nil {
		return wire.FileList{}, err
	}
	p, err := r.walk(path, false)
	if err != nil {
		return wire.FileList{}, err
	}
	defer p.close()
	switch kind := typeOf(p.is.Mode); {
	case !p.exists:
		return wire.FileList{}, refuse(ErrNotFound, "there is no directory %s%s", quote(p.shown()), alike(p.dir, p.name))
	case kind != wire.TypeDirectory:
		return wire.FileList{}, refuse(ErrNotDirectory, "%s is a %s, no directory", quote(p.shown()), kind)
	}
	if want.Depth == 0 {
		want.Depth = pattern.depth()
	}
	want.Depth = min(want.Depth, wire.MaxListDepth)
	l := &lister{ctx: ctx, at: p.spot, want: want, glob: pattern, bounds: b, position: after}
	l.list.Path, l.list.Entries = p.shown(), []wire.FileEntry{}
	if err := l.directory(p.dir, p.name, nil, after); err != nil && !errors.Is(err, errEnough) {
		return wire.FileList{}, refusal(err, p.shown())
	}
	return l.list, nil
}

// errEnough ends a walk that may be gone on with later.
var errEnough = errors.New("the list is full")

// lister is under way through a tree.
type lister struct {
	ctx      context.Context
	at       spot // the listed directory
	want     Listing
	glob     glob
	bounds          // visits are those that are left
	scans    int    // of directories
	position cursor // what it went through last
	bytes    int    // of the entries' encoding
	list     wire.FileList

	unread      int // directories
	firstUnread string
	whyUnread   unix.Errno
}

// directory lists what is in a directory, which the names lead to from the listed
// one, from after on.
func (l *lister) directory(parent int, name string, names []string, after cursor) error {
	dir, err := openat.Directory(parent, name)
	if err != nil {
		return err
	}
	defer dir.Close()
	last := ""
	if len(after.names) > 0 {
		last = after.names[0]
		if err := l.enter(int(dir.Fd()), below(names, last), cursor{after.names[1:], after.done}); err != nil {
			return err
		}
	}
	for {
		first := l.scans == 0
		page, more, err := l.next(dir, last)
		cut := errors.Is(err, errEnough)
		if cut && !first {
			return l.enough()
		}
		if err != nil && !cut {
			return err
		}
		for _, name := range page {
			if err := l.entry(int(dir.Fd()), below(names, name), cut); err != nil {
				return err
			}
			last = name
		}
		if cut { // this directory alone is too large: there is no going on
			l.list.Truncated = true
			return errEnough
		}
		if !more {
			return nil
		}
	}
}

func below(names []string, name string) []string {
	return append(names[:len(names):len(names)], name)
}

// enough ends the list before what comes next.
func (l *lister) enough() error {
	l.list.Truncated, l.list.Next = true, l.position.String()
	return errEnough
}

// entry adds what is called so, if it is wanted, and what is in it, unless flat.
func (l *lister) entry(dir int, names []string, flat bool) error {
	if err := l.ctx.Err(); err != nil {
		return err
	}
	name := names[len(names)-1]
	if filename.IsTemporary(name) {
		return nil
	}
	var is unix.Stat_t
	if err := unix.Fstatat(dir, name, &is, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil //nolint:nilerr // it is gone, or not to be seen
	}
	path := strings.Join(names, "/")
	if l.matching -= l.glob.cost(path); l.matching < 0 {
		if flat { // there is no going on
			l.list.Truncated = true
			return errEnough
		}
		return l.enough()
	}
	if l.glob.match(path) {
		if err := l.add(dir, names, &is); err != nil {
			return err
		}
	}
	l.position = cursor{names, false}
	if flat || typeOf(is.Mode) != wire.TypeDirectory {
		return nil
	}
	return l.enter(dir, names, cursor{})
}

// enter goes into a directory, if it is deep enough for that, and can be read; else
// the list says so.
func (l *lister) enter(parent int, names []string, after cursor) error {
	switch {
	case after.done && len(after.names) == 0, len(names) >= l.want.Depth, !l.glob.enters(names, l.want.Hidden):
		return nil
	case len(l.at.shown(names...))+unix.NAME_MAX >= wire.MaxPath: // what is in it could not be named
		return nil
	}
	err := l.directory(parent, names[len(names)-1], names, after)
	var errno unix.Errno
	if err != nil && !errors.As(err, &errno) {
		return err
	}
	if err != nil && !isGone(errno) {
		l.unreadable(names, errno)
	}
	l.position = cursor{names, true}
	return nil
}

// isGone tells whether what was a directory is something else by now.
func isGone(errno unix.Errno) bool {
	return errno == unix.ENOENT || errno == unix.ENOTDIR || errno == unix.ELOOP
}

// unreadable notes that the entries of a directory are missing.
func (l *lister) unreadable(names []string, why unix.Errno) {
	if l.unread++; l.unread == 1 {
		l.firstUnread, l.whyUnread = quote(l.at.shown(names...)), why
		l.list.Notice = fmt.Sprintf("What is in %s is missing: it could not be read (%v).", l.firstUnread, why)
		return
	}
	l.list.Notice = fmt.Sprintf("What is in %d directories is missing: they could not be read. The first is %s (%v).", l.unread, l.firstUnread, l.whyUnread)
}

// add adds an entry, if there is room for it.
func (l *lister) add(dir int, names []string, is *unix.Stat_t) error {
	e := wire.FileEntry{Path: l.at.shown(names...), Type: typeOf(is.Mode), Mode: octal(is.Mode), Modified: modified(is)}
	switch e.Type {
	case wire.TypeFile:
		e.Size = is.Size
	case wire.TypeSymlink:
		e.Target, _ = readLink(dir, names[len(names)-1]) // if it is still there
	}
	encoded, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode entry: %w", err)
	}
	size := len(encoded) + len(",")
	if len(l.list.Entries) == l.want.Limit || l.bytes+size > wire.MaxList && l.bytes > 0 {
		return l.enough()
	}
	l.list.Entries = append(l.list.Entries, e)
	l.bytes += size
	return nil
}
