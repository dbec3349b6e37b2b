package files

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/filename"
	"github.com/berth-dev/berth/sandbox-agent/openat"
	"github.com/berth-dev/berth/sandbox-agent/upload"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// Write makes body, of at most limit bytes (0: any number), the content of the
// file that path leads to, or would. received is how much came, also when it
// fails; then nothing has changed.
func (r *Reach) Write(path string, body io.Reader, limit int64) (w wire.WrittenFile, received int64, err error) {
	draft, err := r.draft(path)
	if err != nil {
		return w, 0, err
	}
	p := draft.place
	defer p.close()
	defer func() {
		if err != nil {
			p.made.undo()
		}
	}()
	defer draft.drop()
	received, err = upload.Receive(draft, body, limit)
	if errors.Is(err, upload.ErrTooLarge) {
		return w, received, tooLarge(p.shown(), limit)
	}
	if err != nil {
		return w, received, refusal(err, p.shown())
	}
	unlock, err := r.lock(p)
	if err != nil {
		return w, received, err
	}
	defer unlock()
	if err := draft.publish(); err != nil {
		return w, received, err
	}
	return wire.WrittenFile{Path: p.shown(), Size: received, Mode: octal(draft.mode), Created: !p.exists}, received, nil
}

// draftAttempts is how often a write begins anew whose directory another one made
// and, as it failed, removed.
const draftAttempts = 10

// draft begins to write what path leads to. It keeps the directories on its way:
// one that holds a draft is not empty.
func (r *Reach) draft(path string) (d *draft, err error) {
	for range draftAttempts {
		if d, err = r.tryDraft(path); !errors.Is(err, ErrNotFound) {
			break
		}
	}
	return d, err
}

func (r *Reach) tryDraft(path string) (*draft, error) {
	p, err := r.walk(path, true)
	if err != nil {
		return nil, err
	}
	var d *draft
	if err = p.replaceable(); err == nil {
		r.store.sweeps.sweep(p.dir)
		d, err = p.draft()
	}
	if err != nil {
		p.made.undo()
		p.close()
		return nil, err
	}
	return d, nil
}

func tooLarge(shown string, limit int64) error {
	return refuse(ErrTooLarge, "%s would be larger than the limit of %d bytes", quote(shown), limit)
}

func (r *Reach) lock(p *place) (unlock func(), err error) {
	var in unix.Stat_t
	if err := unix.Fstat(p.dir, &in); err != nil {
		return nil, fmt.Errorf("stat directory: %w", err)
	}
	return r.store.locks.lock(key{in.Dev, in.Ino, p.name}), nil
}

// replaceable returns an error for what may not be replaced: what is no regular
// file, and what can't be written to.
func (p *place) replaceable() error {
	if !p.exists {
		return nil
	}
	if err := p.regular(); err != nil {
		return err
	}
	if err := unix.Faccessat(p.dir, p.name, unix.W_OK, unix.AT_EACCESS); err != nil {
		return refuse(ErrForbidden, "%s can't be written to (mode %s)", quote(p.shown()), octal(p.is.Mode))
	}
	return nil
}

// draft is a file that is being written, beside the one that it is to replace.
type draft struct {
	*os.File
	place *place
	name  string
	mode  uint32
}

// draft creates one, with the mode and owner of the file that is there. Nobody
// else can read it before it has those.
func (p *place) draft() (*draft, error) {
	d := &draft{place: p, name: filename.Temporary(p.name, filename.Write)}
	mode := uint32(0o666) // less the umask
	if p.exists {
		mode = 0o600
	}
	var err error
	if d.File, err = openat.Create(p.dir, d.name, mode); err != nil {
		return nil, refusal(err, p.shown())
	}
	if err := d.inherit(); err != nil {
		d.drop()
		return nil, refusal(err, p.shown())
	}
	return d, nil
}

// inherit takes over owner and mode. Whose owner can't be kept loses what would
// make it act as another.
func (d *draft) inherit() error {
	fd := int(d.Fd())
	var is unix.Stat_t
	if err := unix.Fstat(fd, &is); err != nil {
		return err
	}
	d.mode = is.Mode & 0o7777
	if !d.place.exists {
		return nil
	}
	was := &d.place.is
	d.mode = was.Mode & 0o7777
	if is.Uid != was.Uid || is.Gid != was.Gid {
		err := unix.Fchown(fd, int(was.Uid), int(was.Gid))
		if errors.Is(err, unix.EPERM) {
			d.mode &^= unix.S_ISUID | unix.S_ISGID
		} else if err != nil {
			return err
		}
	}
	return unix.Fchmod(fd, d.mode)
}

// publish gives the draft its name. The caller holds the file's lock.
func (d *draft) publish() error {
	err := d.Close() // where a disk may say that it is full
	if err == nil {
		err = unix.Renameat(d.place.dir, d.name, d.place.dir, d.place.name)
	}
	if err != nil {
		return refusal(err, d.place.shown())
	}
	d.name = ""
	return nil
}

// drop removes a draft that was not published.
func (d *draft) drop() {
	if d.name != "" {
		d.Close()
		_ = unix.Unlinkat(d.place.dir, d.name, 0) // a hidden file is all that could stay
	}
}
