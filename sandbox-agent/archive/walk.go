package archive

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/openat"
)

// walk is one tree on its way into an archive.
type walk struct {
	ctx    context.Context
	tar    *tar.Writer
	omit   func(name string) bool
	buffer []byte
	report Report

	bounds  bounds
	entries int   // that were read of directories
	names   int   // bytes of names that are held
	left    int64 // bytes that contents may still take
}

// bounds are MaxEntries, MaxDepth and maxNames; tests lower them.
type bounds struct{ entries, depth, names int }

// directory writes dir, which is called path, and all that is in it.
func (w *walk) directory(dir *os.File, st *unix.Stat_t, path string, depth int) error {
	if err := w.tar.WriteHeader(header(tar.TypeDir, path+"/", st)); err != nil {
		return err
	}
	before := w.names
	names, err := w.read(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if depth == 1 && w.omit != nil && w.omit(name) {
			continue
		}
		if err := w.entry(dir, name, path+"/"+name, depth); err != nil {
			return err
		}
	}
	w.names = before
	return nil
}

// read returns the sorted names in dir.
func (w *walk) read(dir *os.File) ([]string, error) {
	const some = 1024
	var names []string
	for {
		if err := w.ctx.Err(); err != nil {
			return nil, err
		}
		more, err := dir.Readdirnames(some)
		names = append(names, more...)
		w.entries += len(more)
		for _, name := range more {
			w.names += len(name)
		}
		switch {
		case w.entries > w.bounds.entries, w.names > w.bounds.names:
			return nil, ErrEntries
		case errors.Is(err, io.EOF), errors.Is(err, unix.ENOENT): // or removed meanwhile
			slices.Sort(names)
			return names, nil
		case err != nil:
			return nil, fmt.Errorf("read directory: %w", bare(err))
		}
	}
}

// entry writes what is called name in dir. What it is may change before it is
// opened: then it is left out.
func (w *walk) entry(dir *os.File, name, path string, depth int) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if len(path) > MaxPath {
		return ErrDepth
	}
	var st unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return w.leaveOut(path, err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR, unix.S_IFREG:
		return w.open(dir, name, path, st.Mode&unix.S_IFMT, depth)
	case unix.S_IFLNK:
		return w.link(dir, name, path, &st)
	default:
		w.report.special.add(path)
		return nil
	}
}

// open writes a directory or a file, if it is still the kind that it was.
func (w *walk) open(dir *os.File, name, path string, kind uint32, depth int) error {
	opened := openat.File
	if kind == unix.S_IFDIR {
		if depth == w.bounds.depth {
			return ErrDepth
		}
		opened = openat.Directory
	}
	f, err := opened(int(dir.Fd()), name)
	if err != nil {
		return w.leaveOut(path, err)
	}
	defer f.Close()
	var st unix.Stat_t
	switch err := unix.Fstat(int(f.Fd()), &st); {
	case err != nil:
		return w.leaveOut(path, err)
	case st.Mode&unix.S_IFMT != kind:
		w.report.changed.add(path)
		return nil
	case kind == unix.S_IFDIR:
		return w.directory(f, &st, path, depth+1)
	}
	return w.file(f, &st, path)
}

// link writes a symbolic link as what it says.
func (w *walk) link(dir *os.File, name, path string, st *unix.Stat_t) error {
	n, err := unix.Readlinkat(int(dir.Fd()), name, w.buffer)
	if err != nil {
		return w.leaveOut(path, err)
	}
	h := header(tar.TypeSymlink, path, st)
	h.Linkname = string(w.buffer[:n])
	return w.tar.WriteHeader(h)
}

// leaveOut goes on without what could not be opened for a reason of its own.
func (w *walk) leaveOut(path string, err error) error {
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM), errors.Is(err, unix.EWOULDBLOCK): // leased (fcntl(2))
		w.report.unreadable.add(path)
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ENXIO), errors.Is(err, unix.EINVAL):
		w.report.changed.add(path) // removed, or another kind by now
	default:
		return fmt.Errorf("open: %w", err)
	}
	return nil
}

// bare drops the name from an error.
func bare(err error) error {
	var named *os.PathError
	if errors.As(err, &named) {
		return named.Err
	}
	return err
}
