package artifactstore

import (
	"context"
	"errors"
	"io"

	"github.com/minio/minio-go/v7"
)

// putParts sends a file that is too large for one request. Each part is streamed
// as a small file is: the library's own way would hold it in memory.
func (s *Store) putParts(ctx context.Context, key string, f *File, source *source) error {
	upload, err := s.core.NewMultipartUpload(ctx, s.bucket, key, minio.PutObjectOptions{UserMetadata: f.metadata()})
	if err != nil {
		return err
	}
	parts, err := s.sendParts(ctx, key, upload, f.Size, source)
	if err == nil {
		err = s.finish(ctx, key, upload, parts, source.watch)
	}
	if err == nil {
		return nil
	}
	return errors.Join(err, clean(ctx, func(ctx context.Context) error {
		err := s.core.AbortMultipartUpload(ctx, s.bucket, key, upload)
		if code, _ := code(err); code == minio.NoSuchUpload {
			return nil
		}
		return err
	}))
}

func (s *Store) sendParts(ctx context.Context, key, upload string, size int64, source *source) ([]minio.CompletePart, error) {
	length := max(s.limits.part, (size+maxParts-1)/maxParts)
	var parts []minio.CompletePart
	for left := size; left > 0; left -= min(left, length) {
		n := min(left, length)
		part, err := s.core.PutObjectPart(ctx, s.bucket, key, upload, len(parts)+1, io.LimitReader(source, n), n, minio.PutObjectPartOptions{
			DisableContentSha256: s.secure, // TLS protects what is sent
		})
		if err != nil {
			return nil, err
		}
		parts = append(parts, minio.CompletePart{PartNumber: part.PartNumber, ETag: part.ETag})
	}
	return parts, nil
}

// finish makes an object of the parts, which may take a store long.
func (s *Store) finish(ctx context.Context, key, upload string, parts []minio.CompletePart, w *watchdog) error {
	w.timer.Stop()
	ctx, cancel := context.WithTimeoutCause(ctx, s.limits.finish, errSlow)
	defer cancel()
	_, err := s.core.CompleteMultipartUpload(ctx, s.bucket, key, upload, parts, minio.PutObjectOptions{})
	if err != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	return nil
}
