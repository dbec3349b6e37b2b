package artifactstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/berth-dev/berth/gateway/artifact"
	"github.com/berth-dev/berth/gateway/authn"
)

// Source reads stored files from their stores, and others from Agents.
type Source struct {
	Stores Stores
	Agents artifact.Source
}

// Open implements artifact.Source.
func (s Source) Open(ctx context.Context, caller *authn.Caller, handle artifact.Handle, part artifact.Part) (*artifact.Reading, error) {
	if handle.Store == "" {
		return s.Agents.Open(ctx, caller, handle, part)
	}
	store, ok := s.Stores[handle.Store]
	if !ok {
		return nil, artifact.ErrNotFound
	}
	reading, err := store.open(ctx, caller, handle, part)
	store.observe(OperationGet, err)
	return reading, err
}

// open asks for the object. At its expiry it is gone, whether swept or not.
func (s *Store) open(ctx context.Context, caller *authn.Caller, h artifact.Handle, part artifact.Part) (*artifact.Reading, error) {
	left := s.left(h)
	if left <= 0 {
		return nil, artifact.ErrNotFound
	}
	ctx, w, cancel := watch(ctx, s.limits.open)
	body, info, header, err := s.core.GetObject(ctx, s.bucket, s.objectKey(h), getOptions(part))
	if beyond(err) && part.Offset == 0 {
		// Of nothing there is no first byte: S3 refuses the part, which is the whole.
		body, info, header, err = s.core.GetObject(ctx, s.bucket, s.objectKey(h), minio.GetObjectOptions{})
	}
	if err != nil {
		if beyond(err) {
			err = s.errBeyond(ctx, caller, h)
		} else if missing(err) {
			err = artifact.ErrNotFound
		} else {
			err = s.fail(ctx, "get", err)
		}
		cancel(nil)
		return nil, err
	}
	reading, err := newReading(caller, info, header, part)
	if err != nil {
		if !errors.Is(err, artifact.ErrNotFound) {
			err = s.fail(ctx, "get", err)
		}
		body.Close()
		cancel(nil)
		return nil, err
	}
	w.timer.Stop()
	reading.ExpiresIn = int(left / time.Second)
	reading.Body = &objectBody{store: s, ctx: ctx, body: body, left: reading.Length, watch: w, end: cancel}
	return reading, nil
}

func getOptions(part artifact.Part) (o minio.GetObjectOptions) {
	switch {
	case part.Length > 0:
		o.Set("Range", fmt.Sprintf("bytes=%d-%d", part.Offset, part.Offset+part.Length-1))
	case part.Offset > 0:
		o.Set("Range", fmt.Sprintf("bytes=%d-", part.Offset))
	}
	return o
}

// beyond tells whether err says that a range begins at or after the end.
func beyond(err error) bool {
	_, status := code(err)
	return status == http.StatusRequestedRangeNotSatisfiable
}

// errBeyond says so to the file's owner alone.
func (s *Store) errBeyond(ctx context.Context, caller *authn.Caller, h artifact.Handle) error {
	info, err := s.core.StatObject(ctx, s.bucket, s.objectKey(h), minio.StatObjectOptions{})
	switch {
	case missing(err):
		return artifact.ErrNotFound
	case err != nil:
		return s.fail(ctx, "get", err)
	}
	if d, err := readMetadata(info.UserMetadata); err != nil || !owns(caller, d.owner) {
		return artifact.ErrNotFound
	}
	return artifact.ErrRange
}

// errPart is an answer that is not what was asked for.
var errPart = errors.New("another part of the object than was asked for")

// newReading checks an answer. An object that is not of our making is not found,
// as one of another owner is.
func newReading(caller *authn.Caller, info minio.ObjectInfo, header http.Header, part artifact.Part) (*artifact.Reading, error) {
	d, err := readMetadata(info.UserMetadata)
	if err != nil || !owns(caller, d.owner) {
		return nil, artifact.ErrNotFound
	}
	r := &artifact.Reading{Name: d.name, MIMEType: d.mimeType, Size: info.Size, SHA256: d.digest, ETag: `"` + d.digest + `"`, Length: info.Size}
	if text := header.Get("Content-Range"); text != "" {
		if r.Offset, r.Length, r.Size, err = parseRange(text); err != nil {
			return nil, err
		}
	}
	whole := part.Length == 0 || part.Length > r.Size-part.Offset
	if info.Size != r.Length || r.Offset != part.Offset ||
		whole && r.Length != r.Size-part.Offset || !whole && r.Length != part.Length {
		return nil, errPart
	}
	return r, nil
}

func parseRange(text string) (offset, length, size int64, err error) {
	var first, last int64
	if n, err := fmt.Sscanf(strings.TrimSpace(text), "bytes %d-%d/%d", &first, &last, &size); n != 3 || err != nil ||
		first < 0 || last < first || last >= size {
		return 0, 0, 0, errPart
	}
	return first, last - first + 1, size, nil
}

// objectBody is an object's bytes on their way. Its time runs only while it is
// read: a slow reader is not the store's fault.
type objectBody struct {
	store *Store
	ctx   context.Context
	body  io.ReadCloser
	left  int64
	watch *watchdog
	end   context.CancelCauseFunc
}

// Read implements io.Reader. Its errors' texts are for the caller.
func (b *objectBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	b.watch.timer.Reset(b.store.limits.stall)
	n, err := b.body.Read(p[:min(int64(len(p)), b.left)])
	b.watch.timer.Stop()
	b.left -= int64(n)
	switch {
	case b.left == 0:
		return n, nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return n, b.store.fail(b.ctx, "read", errCutOff)
	case err != nil:
		return n, b.store.fail(b.ctx, "read", err)
	}
	return n, nil
}

// Close implements io.Closer.
func (b *objectBody) Close() error {
	defer b.end(nil)
	return b.body.Close()
}
