package artifactstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/errgroup"
)

const (
	// sweepEvery is how often a replica sweeps a store, give or take a half: so
	// replicas rarely do the same at the same time, which would be harmless.
	sweepEvery = 15 * time.Minute
	// sweepTimeout and sweepMost bound one sweep; the next goes on from there.
	sweepTimeout = 5 * time.Minute
	sweepMost    = 10_000
	// sweepFailures is how many deletes may fail until a sweep gives up; the next
	// leaves these out.
	sweepFailures = 100
	// skew is how far replicas' clocks may be apart: an object that one takes for
	// expired may be another's to read.
	skew = time.Minute
	// sweepParallel is how many objects are deleted at a time.
	sweepParallel = 8
	// abandoned is the age at which an upload that was never finished is nobody's.
	abandoned = 24 * time.Hour
)

// Run tells whether each store can be used, and sweeps all of them until ctx ends.
func (s Stores) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, store := range s {
		all.Go(func() {
			store.look(ctx)
			repeat(ctx, store.sweepOnce)
		})
	}
	all.Wait()
}

// repeat calls f again and again, about sweepEvery apart, until ctx ends. The
// first time comes sooner, but not at once: a gateway that begins has other work.
func repeat(ctx context.Context, f func(context.Context)) {
	next := rand.N(sweepEvery) + time.Second
	for {
		timer := time.NewTimer(next)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		f(ctx)
		next = sweepEvery/2 + rand.N(sweepEvery)
	}
}

// sweepOnce sweeps, and tells how it went.
func (s *Store) sweepOnce(ctx context.Context) {
	sweeping, cancel := context.WithTimeoutCause(ctx, sweepTimeout, errSlow)
	defer cancel()
	swept, err := s.sweep(sweeping)
	s.options.Swept(swept)
	if ctx.Err() != nil {
		return // told to stop
	}
	s.options.Observe(OperationSweep, err)
	if err != nil {
		s.log.Warn("Artifact store could not be swept", "store", s.name, "swept", swept, "error", strip(err))
		return
	}
	s.log.Debug("Swept artifact store", "store", s.name, "swept", swept)
}

// sweep deletes expired objects and gives up uploads that were abandoned. It
// touches nothing that the gateway didn't write. Keys begin with the time of
// expiry and lists are in order, so the first object that hasn't expired ends it,
// and the next one begins at the first object again. One that ended before goes on
// where it did: objects that can't be deleted, however many, keep no other.
func (s *Store) sweep(ctx context.Context) (swept int, err error) {
	now := s.options.Now().Add(-skew).Unix()
	var deleted, failed atomic.Int64
	listing, cancel := context.WithCancel(ctx)
	defer cancel() // ends the list
	// An object that can't be deleted, such as a locked one, keeps no other from it.
	var deletes errgroup.Group
	deletes.SetLimit(sweepParallel)
	asked, from := 0, s.sweptTo
	last := from
	s.sweptTo = ""
	for object := range s.core.ListObjectsIter(listing, s.bucket, minio.ListObjectsOptions{Prefix: s.root, Recursive: true, StartAfter: from}) {
		if object.Err != nil {
			err = object.Err
			break
		}
		handle, ours := s.parseKey(object.Key)
		if !ours {
			continue
		}
		if now < handle.Expiry {
			break
		}
		if asked == s.limits.sweep || failed.Load() >= int64(s.limits.failures) || ctx.Err() != nil {
			s.sweptTo = last
			break
		}
		asked, last = asked+1, object.Key
		deletes.Go(func() error {
			err := s.core.RemoveObject(ctx, s.bucket, object.Key, minio.RemoveObjectOptions{})
			if err != nil {
				failed.Add(1)
				return err
			}
			deleted.Add(1)
			return nil
		})
	}
	err = errors.Join(deletes.Wait(), err, context.Cause(ctx))
	if ctx.Err() == nil {
		err = errors.Join(err, s.abort(ctx))
	}
	return int(deleted.Load()), err
}

// abort gives up uploads in parts that were never finished: those of a gateway
// that was killed.
func (s *Store) abort(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the list
	before := s.options.Now().Add(-abandoned)
	for upload := range s.core.ListIncompleteUploads(ctx, s.bucket, s.root, true) {
		if upload.Err != nil {
			return upload.Err
		}
		if _, ours := s.parseKey(upload.Key); !ours || upload.Initiated.After(before) {
			continue
		}
		if err := s.core.AbortMultipartUpload(ctx, s.bucket, upload.Key, upload.UploadID); err != nil {
			return err
		}
	}
	return nil
}
