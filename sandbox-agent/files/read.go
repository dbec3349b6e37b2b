package files

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/openat"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// File is a regular file, open for reading.
type File struct {
	*os.File
	// Facts are of the moment it was opened.
	Facts wire.FileFacts
	shown string
}

// Open opens the regular file that path leads to. It doesn't block.
func (r *Reach) Open(path string) (*File, error) {
	p, err := r.walk(path, false)
	if err != nil {
		return nil, err
	}
	defer p.close()
	f, is, err := p.open()
	if err != nil {
		return nil, err
	}
	file := &File{File: f, shown: p.shown()}
	file.Facts = wire.FileFacts{Size: is.Size, Mode: octal(is.Mode), Modified: modified(is)}
	if file.Facts.MIMEType, file.Facts.Encoding, err = kindOf(p.name, f); err != nil {
		f.Close()
		return nil, refusal(err, file.shown)
	}
	return file, nil
}

// open opens the regular file that is there. What is none is not even opened:
// that of a device can do things.
func (p *place) open() (*os.File, *unix.Stat_t, error) {
	if !p.exists {
		return nil, nil, refuse(ErrNotFound, "there is no file %s%s", quote(p.shown()), alike(p.dir, p.name))
	}
	if err := p.regular(); err != nil {
		return nil, nil, err
	}
	f, err := openat.File(p.dir, p.name)
	if err != nil {
		return nil, nil, refusal(err, p.shown())
	}
	if err := unix.Fstat(int(f.Fd()), &p.is); err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("stat file: %w", err)
	}
	if err := p.regular(); err != nil { // another took its place
		f.Close()
		return nil, nil, err
	}
	return f, &p.is, nil
}

// regular returns an error for what is no regular file.
func (p *place) regular() error {
	kind := typeOf(p.is.Mode)
	switch kind {
	case wire.TypeFile:
		return nil
	case wire.TypeDirectory:
		return refuse(ErrNotRegular, "%s is a directory: list it, or name a file in it", quote(p.shown()))
	}
	return refuse(ErrNotRegular, "%s is no regular file, but a %s", quote(p.shown()), kind)
}

// typeOf names the type of a mode.
func typeOf(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return wire.TypeFile
	case unix.S_IFDIR:
		return wire.TypeDirectory
	case unix.S_IFLNK:
		return wire.TypeSymlink
	case unix.S_IFIFO:
		return wire.TypeFIFO
	case unix.S_IFSOCK:
		return wire.TypeSocket
	}
	return wire.TypeDevice
}

// octal is a mode's permissions, with those that are special.
func octal(mode uint32) string { return fmt.Sprintf("%04o", mode&0o7777) }

func modified(is *unix.Stat_t) time.Time { return time.Unix(is.Mtim.Unix()).UTC() }
