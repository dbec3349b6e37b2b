package files

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/openat"
)

const (
	// maxLinks is how many links a path may lead through, as in the kernel.
	maxLinks = 40
	// maxSteps bounds a walk through links whose text is long.
	maxSteps = 20_000
)

// place is a name in an open directory: what a path leads to.
type place struct {
	dir  int    // O_PATH
	name string // "." for a base itself
	spot        // where it is, links followed
	// exists tells whether is is of something.
	exists bool
	is     unix.Stat_t
	made   made
}

func (p *place) close() {
	unix.Close(p.dir)
	p.made.close()
}

// made are directories that were made on the way, each in the one before.
type made struct {
	in    int // where the first of them is, O_PATH
	names []string
}

// undo removes them, as long as they are empty.
func (m *made) undo() {
	for n := len(m.names); n > 0; n-- {
		if unix.Unlinkat(m.in, strings.Join(m.names[:n], "/"), unix.AT_REMOVEDIR) != nil {
			return // something else is there by now
		}
	}
}

func (m *made) close() {
	if len(m.names) > 0 {
		unix.Close(m.in)
	}
}

// walker is on its way along a path.
type walker struct {
	reach *Reach
	at    spot   // the directory it is in, without links
	dir   int    // that directory, O_PATH; -1: to be opened
	above string // where it is instead, if that is outside all bases: just passing
	make  bool   // missing directories are made
	made  made
	links int
	steps int
}

// walk follows a path to its end: to what is there, or, if only the last name is
// missing, to where it would be. With create, missing directories are made.
func (r *Reach) walk(path string, create bool) (*place, error) {
	to, err := r.parse(path)
	if err != nil {
		return nil, err
	}
	w := &walker{reach: r, at: spot{base: to.base}, dir: -1, make: create}
	p, err := w.follow(to.names)
	if err != nil {
		w.made.undo()
		w.made.close()
		w.move(-1)
		return nil, err
	}
	p.made = w.made
	return p, nil
}

func (w *walker) follow(todo []string) (*place, error) {
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		if w.steps++; w.steps > maxSteps {
			return nil, w.tooManyLinks(name)
		}
		if name == ".." || w.above != "" {
			w.turn(name)
			continue
		}
		if err := w.open(); err != nil {
			return nil, err
		}
		var is unix.Stat_t
		err := unix.Fstatat(w.dir, name, &is, unix.AT_SYMLINK_NOFOLLOW)
		kind := is.Mode & unix.S_IFMT
		switch {
		case errors.Is(err, unix.ENOENT) && len(todo) == 0:
			return w.end(name, nil), nil
		case errors.Is(err, unix.ENOENT):
			err = w.missing(name)
		case err != nil:
			err = refusal(err, w.at.shown(name))
		case kind == unix.S_IFLNK:
			todo, err = w.link(name, todo)
		case len(todo) == 0:
			return w.end(name, &is), nil
		case kind != unix.S_IFDIR:
			err = refuse(ErrNotDirectory, "%s is not a directory", quote(w.at.shown(name)))
		default:
			err = w.enter(name)
		}
		if err != nil {
			return nil, err
		}
	}
	return w.here()
}

// here ends at the directory that the walker is in.
func (w *walker) here() (*place, error) {
	if w.above != "" {
		return nil, outside("a link")
	}
	if err := w.open(); err != nil {
		return nil, err
	}
	var is unix.Stat_t
	if err := unix.Fstatat(w.dir, ".", &is, 0); err != nil {
		return nil, refusal(err, w.at.shown())
	}
	return &place{dir: w.dir, name: ".", spot: w.at, exists: true, is: is}, nil
}

// end ends at a name in that directory, which is is of, if there is such.
func (w *walker) end(name string, is *unix.Stat_t) *place {
	at := spot{w.at.base, append(append([]string{}, w.at.names...), name)}
	p := &place{dir: w.dir, name: name, spot: at, exists: is != nil}
	if is != nil {
		p.is = *is
	}
	return p
}

// open opens the directory that the walker is in, from its base on.
func (w *walker) open() error {
	if w.dir >= 0 {
		return nil
	}
	base := w.at.base
	if base == "" {
		base = "."
	}
	dir, err := openat.Base(w.reach.store.fd, base) // a base may be reached by links
	if err != nil {
		return refusal(err, w.at.base)
	}
	w.dir = dir
	if w.at.base != "" && onProc(dir) {
		return outside("the root " + quote(w.at.base))
	}
	names := w.at.names
	w.at.names = nil
	for _, name := range names {
		if w.steps++; w.steps > maxSteps {
			return w.tooManyLinks(name)
		}
		if err := w.enter(name); err != nil {
			return err
		}
	}
	return nil
}

// onProc tells whether a root leads to /proc, where the agent would find itself: its
// memory and what it has open. Commands can make a root such a link, if they can write
// to where it is. All else that it may lead to they can open themselves, as the
// agent's user and in its mounts; that is why a root is opened anew by each call, and
// one that they make only later is found.
func onProc(dir int) bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(dir, &fs) != nil || fs.Type == unix.PROC_SUPER_MAGIC
}

// enter goes into a directory, which is no link.
func (w *walker) enter(name string) error {
	dir, err := openat.Path(w.dir, name)
	if err != nil {
		return refusal(err, w.at.shown(name))
	}
	w.move(dir)
	w.at.names = append(w.at.names[:len(w.at.names):len(w.at.names)], name)
	return nil
}

// move makes dir the directory that the walker is in.
func (w *walker) move(dir int) {
	if w.dir >= 0 {
		unix.Close(w.dir)
	}
	w.dir = dir
}

// turn goes to the directory above, or, above all bases, wherever a link leads:
// nothing is looked at there, and the next base may be on its way.
func (w *walker) turn(name string) {
	if n := len(w.at.names); n > 0 && w.above == "" {
		w.at.names = w.at.names[:n-1]
		w.move(-1)
		return
	}
	path := w.above
	if path == "" {
		path = w.absolute()
	}
	w.jump(filepath.Join(path, name))
}

// absolute is where the walker is.
func (w *walker) absolute() string {
	base := w.at.base
	if base == "" {
		base = w.reach.store.workspace
	}
	return filepath.Join(base, strings.Join(w.at.names, "/"))
}

// jump goes to an absolute path without links, as that of a base is.
func (w *walker) jump(path string) {
	to, ok := w.reach.locate(path)
	if w.above = ""; !ok {
		w.above = path
	}
	w.at = to
	w.move(-1)
}

// link returns what is to be followed instead of a link and what comes after it.
func (w *walker) link(name string, rest []string) (todo []string, err error) {
	shown := w.at.shown(name)
	if w.links++; w.links > maxLinks {
		return nil, w.tooManyLinks(name)
	}
	target, err := readLink(w.dir, name)
	if errors.Is(err, unix.EINVAL) { // it is none any more
		return append([]string{name}, rest...), nil
	}
	if err != nil {
		return nil, refusal(err, shown)
	}
	todo = append(split(target), rest...)
	if !filepath.IsAbs(target) {
		return todo, nil
	}
	to, ok := w.reach.locate(filepath.Clean(target))
	if !ok {
		return nil, outside("the link " + quote(shown))
	}
	w.at = spot{base: to.base}
	w.move(-1)
	return append(to.names, rest...), nil
}

func (w *walker) tooManyLinks(name string) error {
	return refuse(ErrNotFound, "%s leads through too many links", quote(w.at.shown(name)))
}

// missing makes the directory that is missing, or says so.
func (w *walker) missing(name string) error {
	shown := w.at.shown(name)
	if !w.make {
		return refuse(ErrNotFound, "there is no directory %s%s", quote(shown), alike(w.dir, name))
	}
	err := unix.Mkdirat(w.dir, name, 0o777) // less the umask, as mkdir does
	if errors.Is(err, unix.EEXIST) {
		return w.enter(name) // another call was faster
	}
	if err != nil {
		return refusal(err, shown)
	}
	if len(w.made.names) == 0 {
		in, err := openat.Path(w.dir, ".")
		if err != nil {
			return errors.Join(refusal(err, shown), unix.Unlinkat(w.dir, name, unix.AT_REMOVEDIR))
		}
		w.made.in = in
	}
	w.made.names = append(w.made.names, name)
	return w.enter(name)
}

func readLink(dir int, name string) (string, error) {
	buffer := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir, name, buffer)
	if err != nil {
		return "", err
	}
	if n == 0 || n == len(buffer) {
		return "", fmt.Errorf("link: %w", unix.ENOENT)
	}
	return string(buffer[:n]), nil
}
