package authn

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// When an issuer is asked for its keys.
const (
	// refreshAfter is the age at which keys are asked for anew, so that one that
	// the issuer has withdrawn goes. Calls go on with the old ones meanwhile.
	refreshAfter = 5 * time.Minute
	// fetchInterval is the least time between two questions: tokens of unknown keys
	// can't make the gateway a load on the issuer.
	fetchInterval = 10 * time.Second
	// fetchTimeout bounds one question.
	fetchTimeout = 8 * time.Second
)

// errNoKey is a token that no key of the issuer's can have signed.
var errNoKey = errors.New("the issuer has no key of this id for this algorithm")

// keySet are an issuer's keys: asked for when they are first needed, kept, and kept
// too while the issuer can't be reached.
type keySet struct {
	fetch func(context.Context) ([]publicKey, error)
	now   func() time.Time
	log   *slog.Logger

	mu      sync.Mutex
	keys    []publicKey
	tried   time.Time     // when the issuer was asked last
	err     error         // what came of it
	running chan struct{} // closed at the end of the question under way, or nil
}

// find returns the key of that id. It is errNoKey when the issuer has none, and
// another error when it can't be asked.
func (s *keySet) find(ctx context.Context, id, algorithm string) (crypto.PublicKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := s.lookup(id, algorithm)
	if age := s.now().Sub(s.tried); s.running == nil &&
		(s.tried.IsZero() || age >= refreshAfter || key == nil && age >= fetchInterval) {
		s.begin()
	}
	if key != nil {
		return key, nil
	}
	if running := s.running; running != nil {
		s.mu.Unlock()
		select {
		case <-running:
		case <-ctx.Done():
		}
		s.mu.Lock()
		if key = s.lookup(id, algorithm); key != nil {
			return key, nil
		}
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case s.err != nil:
		return nil, s.err
	default:
		return nil, errNoKey
	}
}

// lookup finds a key. A token without an id is taken only if there is no choice.
func (s *keySet) lookup(id, algorithm string) crypto.PublicKey {
	if id == "" && len(s.keys) != 1 {
		return nil
	}
	for _, k := range s.keys {
		if (id == "" || k.id == id) && slices.Contains(k.algorithms, algorithm) {
			return k.key
		}
	}
	return nil
}

// begin asks the issuer, apart from the call that made it necessary.
func (s *keySet) begin() {
	running := make(chan struct{})
	s.running, s.tried = running, s.now()
	go func() {
		defer close(running)
		ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
		defer cancel()
		keys, err := s.ask(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.running, s.err = nil, err
		if err != nil {
			s.log.Warn("Keys of the OIDC issuer could not be had", "known", len(s.keys), "error", err)
			return
		}
		s.keys = keys
	}()
}

func (s *keySet) ask(ctx context.Context) (keys []publicKey, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("asking the issuer panicked: %v", p)
		}
	}()
	return s.fetch(ctx)
}
