package artifactstore

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/minio/minio-go/v7"

	"github.com/berth-dev/berth/gateway/artifact"
	"github.com/berth-dev/berth/gateway/session"
)

// File is what is put into a store.
type File struct {
	// Session is whose file it is, and Owner the owner of that; empty if it has
	// none.
	Session session.Key
	Owner   string
	// Name, MIMEType, Size (bytes) and SHA256 (lower-case hex) are what the
	// session's agent says. Size and SHA256 are held against what it gives.
	Name     string
	MIMEType string
	Size     int64
	SHA256   string
	// Open begins to read the file, once for each attempt. It must end with its
	// context.
	Open func(ctx context.Context) (io.ReadCloser, error)
}

// Kept is a file in a store.
type Kept struct {
	// Handle is what it is read by.
	Handle artifact.Handle
	// ExpiresIn is how long it can be read from now on, in seconds: less than the
	// store's expiry by the time that its way into the store took.
	ExpiresIn int
}

// Put puts a file into the store of that name. It holds none of the file but what is on its way. After an error there is no
// object; the error's text is for the caller, or it is what f.Open or its reader
// returned.
func (s Stores) Put(ctx context.Context, name string, f *File) (Kept, error) {
	if err := s.Check(name); err != nil {
		return Kept{}, err
	}
	store := s[name]
	handle, err := store.put(ctx, f)
	store.observe(OperationPut, err)
	if err != nil {
		return Kept{}, err
	}
	return Kept{Handle: handle, ExpiresIn: int(max(store.left(handle), 0) / time.Second)}, nil
}

func (s *Store) put(ctx context.Context, f *File) (artifact.Handle, error) {
	if err := s.check(f); err != nil {
		return artifact.Handle{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.limits.put, errSlow)
	defer cancel()
	handle := s.newHandle(f)
	pause := s.limits.pause
	for attempt := 1; ; attempt++ {
		of, err := s.attempt(ctx, s.objectKey(handle), f)
		switch {
		case err == nil:
			return handle, nil
		case of == theFile:
			return artifact.Handle{}, err
		case attempt == attempts || !temporary(err) || !wait(ctx, pause):
			return artifact.Handle{}, s.fail(ctx, "put", err)
		}
		pause *= 4
	}
}

// check refuses what no attempt is worth.
func (s *Store) check(f *File) error {
	most := s.maxBytes
	if most == 0 {
		most = maxObject
	}
	if f.Size > most {
		return fmt.Errorf("the file has %d bytes, and the artifact store %q takes at most %d", f.Size, s.name, most)
	}
	if !validType(f.MIMEType) || f.Name == "" || len(f.Name) > maxName || !utf8.ValidString(f.Name) || !validDigest(f.SHA256) || f.Size < 0 {
		return errDiffers // its agent says nothing of it that can be kept
	}
	return nil
}

// newHandle names a file that nobody can guess.
func (s *Store) newHandle(f *File) artifact.Handle {
	var id [16]byte
	rand.Read(id[:]) // never fails (crypto/rand)
	return artifact.Handle{
		Key: f.Session, ID: hex.EncodeToString(id[:]), Store: s.name,
		Expiry: s.options.Now().Add(s.expiry + time.Second - 1).Unix(), // never before
	}
}

// wait lets pass what is between two attempts. It is false if there is no time
// for another one.
func wait(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// side is whose failure it was.
type side int

const (
	theStore side = iota
	theFile
)

// attempt sends the file once.
func (s *Store) attempt(ctx context.Context, key string, f *File) (side, error) {
	ctx, w, cancel := watch(ctx, s.limits.stall)
	defer cancel(nil)
	done := w.reads()
	body, err := f.Open(ctx)
	done()
	if err != nil {
		return s.fileFailed(ctx, err)
	}
	defer body.Close()
	source := newSource(body, f, w)
	sending, stop := source.until(ctx)
	defer stop()
	if f.Size == 0 {
		err = source.end() // nothing will be read
	}
	switch {
	case err != nil:
	case f.Size <= s.limits.single:
		err = s.putWhole(sending, key, f, source)
	default:
		err = s.putParts(sending, key, f, source)
	}
	if err == nil && ctx.Err() == nil {
		return theStore, nil
	}
	fault, sent := source.state()
	switch {
	case fault != nil:
		return s.fileFailed(ctx, fault)
	case sent:
		// It may have been kept, and only the answer been lost, or who asked for it.
		err = errors.Join(err, clean(ctx, func(ctx context.Context) error {
			return s.core.RemoveObject(ctx, s.bucket, key, minio.RemoveObjectOptions{})
		}))
	}
	return theStore, errors.Join(context.Cause(ctx), err)
}

// fileFailed tells whose failure it was that the file's end brought up: a store
// that takes nothing makes a read of the file end too.
func (s *Store) fileFailed(ctx context.Context, err error) (side, error) {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errStalled), errors.Is(cause, errSlow):
		return theStore, cause
	case cause != nil:
		return theFile, cause
	}
	return theFile, err
}

// putWhole sends the file in one request, signed with its digest, which so the
// store verifies too.
func (s *Store) putWhole(ctx context.Context, key string, f *File, source *source) error {
	_, err := s.core.PutObject(ctx, s.bucket, key, source, f.Size, "", f.SHA256, minio.PutObjectOptions{
		UserMetadata:         f.metadata(),
		DisableContentSha256: true, // no second digest of each chunk
	})
	return err
}
