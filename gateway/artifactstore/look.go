package artifactstore

import (
	"context"
	"time"

	"github.com/minio/minio-go/v7"
)

// lookTimeout bounds the look at a store when the gateway begins.
const lookTimeout = 30 * time.Second

// look asks the store for an object that there never is, and tells the log whether it
// can be used: one that can says so by the object's absence. A gateway without its
// store serves all else, and the store may come later: it doesn't end of that.
func (s *Store) look(ctx context.Context) {
	asking, cancel := context.WithTimeoutCause(ctx, lookTimeout, errSlow)
	defer cancel()
	body, _, _, err := s.core.GetObject(asking, s.bucket, s.root+"none", minio.GetObjectOptions{})
	if err == nil {
		body.Close()
	}
	if err != nil && !missing(err) {
		_ = s.fail(asking, "look", err) // the log has it
		return
	}
	s.log.Info("Reached artifact store", "store", s.name)
}
