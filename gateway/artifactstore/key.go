package artifactstore

import (
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/gateway/artifact"
	"github.com/berth-dev/berth/gateway/session"
)

// folder comes after a store's prefix: what else is under the prefix is not ours.
const folder = "artifacts/"

// objectKey is where a handle's object is.
func (s *Store) objectKey(h artifact.Handle) string {
	return s.root + strconv.FormatInt(h.Expiry, 10) + "/" + h.Namespace + "/" + h.Name + "/" + h.ID
}

// parseKey is the reverse of objectKey. It accepts exactly what that makes: all
// else in a bucket is somebody else's.
func (s *Store) parseKey(key string) (artifact.Handle, bool) {
	rest, ok := strings.CutPrefix(key, s.root)
	parts := strings.SplitN(rest, "/", 5)
	if !ok || len(parts) != 4 {
		return artifact.Handle{}, false
	}
	expiry, ok := artifact.ParseExpiry(parts[0])
	if !ok || !session.ValidID(parts[1]) || !session.ValidID(parts[2]) || !artifact.ValidID(parts[3]) {
		return artifact.Handle{}, false
	}
	return artifact.Handle{
		Key: session.Key{Namespace: parts[1], Name: parts[2]}, ID: parts[3], Store: s.name, Expiry: expiry,
	}, true
}

// left is how long a file can still be read; 0 and less is no longer.
func (s *Store) left(h artifact.Handle) time.Duration {
	return time.Unix(h.Expiry, 0).Sub(s.options.Now())
}
