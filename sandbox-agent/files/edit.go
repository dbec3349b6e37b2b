package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// Room waits until so many bytes of memory may be taken, up to release.
type Room func(ctx context.Context, size int64) (release func(), err error)

// maxAttempts is how often an edit is made anew because something else wrote to
// the file meanwhile.
const maxAttempts = 3

// Edit makes edits to the file that path leads to, each to what those before it
// left: all of them, or none. No other call of this package comes between its read
// and its write, and a command that did is noticed. limit is that of Write.
func (r *Reach) Edit(ctx context.Context, path string, edits []wire.Edit, limit int64, room Room) (wire.EditedFile, error) {
	if err := checkEdits(edits); err != nil {
		return wire.EditedFile{}, err
	}
	if limit <= 0 || limit > wire.MaxEditFile {
		limit = wire.MaxEditFile
	}
	for attempt := 1; ; attempt++ {
		edited, err := r.tryEdit(ctx, path, edits, limit, room)
		if attempt == maxAttempts || !errors.Is(err, ErrChanged) {
			return edited, err
		}
	}
}

func checkEdits(edits []wire.Edit) error {
	if len(edits) == 0 || len(edits) > wire.MaxEdits {
		return refuse(ErrRequest, "edits: give 1 to %d", wire.MaxEdits)
	}
	for i, e := range edits {
		switch e.Old {
		case "":
			return refuse(ErrRequest, "edit %d: old is empty: say what is to be replaced, or write the whole file", i+1)
		case e.New:
			return refuse(ErrRequest, "edit %d: old and new are the same: nothing would change", i+1)
		}
	}
	return nil
}

func (r *Reach) tryEdit(ctx context.Context, path string, edits []wire.Edit, limit int64, room Room) (edited wire.EditedFile, err error) {
	p, err := r.walk(path, false)
	if err != nil {
		return edited, err
	}
	defer p.close()
	if p.exists && p.is.Size > wire.MaxEditFile {
		return edited, refuse(ErrTooLarge, "%s has %d bytes: edits take files of %d at most; use a command", quote(p.shown()), p.is.Size, wire.MaxEditFile)
	}
	most := p.is.Size + p.is.Size/8 + slack // other edits may come first
	taken := memoryOf(most, edits, limit)
	release, err := room(ctx, taken)
	if err != nil {
		return edited, err
	}
	defer func() {
		if taken > collected {
			runtime.GC() // the next edit takes as much again, before it would be due
		}
		release()
	}()
	unlock, err := r.lock(p)
	if err != nil {
		return edited, err
	}
	defer unlock()
	content, err := p.read(most)
	if err != nil {
		return edited, err
	}
	result, made, err := apply(content, edits, limit, p.shown())
	if err != nil {
		return edited, err
	}
	if err := p.replace(result); err != nil {
		return edited, err
	}
	return wire.EditedFile{Path: p.shown(), Size: int64(len(result)), Edits: made}, nil
}

// slack is how much a file may grow before it is edited.
const slack = 16 << 10

// collected is how much memory an edit may leave behind for later.
const collected = 4 << 20

// memoryOf is what edits to a file of so many bytes take at most: two buffers,
// another to explain what failed, and some more until it is collected.
func memoryOf(size int64, edits []wire.Edit, limit int64) int64 {
	largest := size
	for _, e := range edits {
		more := int64(len(e.New) - len(e.Old))
		if more > 0 && e.ReplaceAll {
			more *= largest / int64(len(e.Old))
		}
		largest = min(largest+max(0, more), max(limit, size))
	}
	return 4 * largest
}

func (p *place) changed() error {
	return refuse(ErrChanged, "%s was written to meanwhile: try again", quote(p.shown()))
}

// read returns the whole of a file, or ErrChanged if that has more than most
// bytes.
func (p *place) read(most int64) ([]byte, error) {
	f, is, err := p.open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := p.replaceable(); err != nil {
		return nil, err
	}
	if is.Size > most {
		return nil, p.changed()
	}
	content := make([]byte, is.Size)
	if _, err := io.ReadFull(f, content); errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return nil, p.changed()
	} else if err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	return content, nil
}

// replace gives a file that was read new content, if it is still as it was then.
func (p *place) replace(content []byte) error {
	d, err := p.draft()
	if err != nil {
		return err
	}
	defer d.drop()
	if _, err := d.Write(content); err != nil {
		return refusal(err, p.shown())
	}
	var is unix.Stat_t
	err = unix.Fstatat(p.dir, p.name, &is, unix.AT_SYMLINK_NOFOLLOW)
	if err != nil || is.Ino != p.is.Ino || is.Dev != p.is.Dev || is.Size != p.is.Size || is.Mtim != p.is.Mtim || is.Ctim != p.is.Ctim {
		return p.changed()
	}
	return d.publish()
}
