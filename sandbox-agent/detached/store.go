package detached

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/artifact"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// Lifetime is how long a result is kept after its command's end.
const Lifetime = wire.DetachedLifetimeSeconds * time.Second

// ErrNotFound is returned for a command that was not detached or whose result is
// no longer kept.
var ErrNotFound = errors.New("no command with this id was detached, or its result is no longer kept")

// ErrIDInUse is returned for an id that is another command's.
var ErrIDInUse = errors.New("a command with this id was detached before")

// Store keeps a session's detached commands. It is safe for concurrent use. How
// many run is its caller's to bound: a command queue does.
type Store struct {
	spools []string
	clock  artifact.Clock

	mu   sync.Mutex
	all  map[string]*Command
	ages list.List // of *Command that have ended, the oldest first: all are kept equally long
	used int64     // bytes of all results
	stop func()    // of the timer for the oldest, nil when there is none
}

// New returns a store whose results lie in one of spools, tried in order.
func New(spools []string, clock artifact.Clock) *Store {
	return &Store{spools: spools, clock: clock, all: map[string]*Command{}}
}

// Command is one detached command.
type Command struct {
	id    string
	sent  time.Time
	ended chan struct{} // closed at its end

	// Under the store's mu.
	cancelled bool
	done      bool
	end       time.Time
	refusal   *wire.ErrorDetail
	result    body
	place     *list.Element
}

// Add begins to keep a command that came at that time.
func (s *Store) Add(id string, sent time.Time) (*Command, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[id] != nil {
		return nil, ErrIDInUse
	}
	c := &Command{id: id, sent: sent, ended: make(chan struct{})}
	s.all[id] = c
	return c, nil
}

// Has tells whether an id is one of its commands'.
func (s *Store) Has(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[id] != nil
}

// Cancelling notes that a command is being cancelled, if it runs. It returns
// whether there is one, running or not.
func (s *Store) Cancelling(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.all[id]
	if c != nil && !c.done {
		c.cancelled = true
	}
	return c != nil
}

// Refuse ends a command that did not run.
func (s *Store) Refuse(c *Command, why wire.ErrorDetail) {
	s.finish(c, body{}, &why, false)
}

// Keep ends a command that ran, or was cancelled before it did. killed says that
// the agent ended it.
func (s *Store) Keep(c *Command, result wire.ExecResult, killed bool) {
	s.finish(c, write(s.spools, result), nil, killed)
}

func (s *Store) finish(c *Command, result body, refusal *wire.ErrorDetail, killed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.done, c.end, c.result, c.refusal = true, s.clock.Now(), result, refusal
	// One that was faster than its cancellation was not cancelled.
	c.cancelled = c.cancelled && killed
	close(c.ended)
	c.place = s.ages.PushBack(c)
	s.used += result.size
	for s.ages.Len() > wire.MaxDetachedResults || s.used > wire.DetachedResultBytes {
		s.remove(s.ages.Front())
	}
	s.arm()
}

// remove forgets a command. The caller holds s.mu.
func (s *Store) remove(e *list.Element) {
	c := s.ages.Remove(e).(*Command)
	delete(s.all, c.id)
	s.used -= c.result.size
	c.result.close()
	if s.ages.Len() == 0 && s.stop != nil {
		s.stop()
		s.stop = nil
	}
}

// arm sets the one timer for the oldest. The caller holds s.mu.
func (s *Store) arm() {
	if s.stop != nil || s.ages.Len() == 0 {
		return
	}
	oldest := s.ages.Front().Value.(*Command)
	s.stop = s.clock.AfterFunc(oldest.end.Add(Lifetime).Sub(s.clock.Now()), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stop = nil
		now := s.clock.Now()
		for e := s.ages.Front(); e != nil && !now.Before(e.Value.(*Command).end.Add(Lifetime)); e = s.ages.Front() {
			s.remove(e)
		}
		s.arm()
	})
}

// State is how a command is. Its result is read by Result, and is not in ExecState.
type State struct {
	wire.ExecState
	result body
}

// Wait returns how a command is: at its end, or after wait if that comes first.
// Its error is ErrNotFound or ctx's.
func (s *Store) Wait(ctx context.Context, id string, wait time.Duration) (State, error) {
	s.mu.Lock()
	c := s.all[id]
	s.mu.Unlock()
	if c == nil {
		return State{}, ErrNotFound
	}
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-c.ended:
		case <-timer.C:
		case <-ctx.Done():
			return State{}, ctx.Err()
		}
	}
	return s.state(c), nil
}

func (s *Store) state(c *Command) State {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := State{ExecState: wire.ExecState{ID: c.id, Running: !c.done, Sent: c.sent.UTC()}}
	if c.done {
		end := c.end.UTC()
		st.Ended, st.Cancelled, st.Error, st.result = &end, c.cancelled, c.refusal, c.result
		st.ExpiresIn = int(max(0, c.end.Add(Lifetime).Sub(s.clock.Now())).Seconds())
	}
	return st
}
