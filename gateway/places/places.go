// Package places bounds how many of something are under way at a time, so that what
// each holds has an end, and how many of them are one caller's, so that others find
// a place.
package places

import (
	"context"
	"sync"

	"github.com/berth-dev/berth/gateway/authn"
)

// Places are what callers hold while they are served.
type Places struct {
	most, each int

	mu   sync.Mutex
	all  int
	held map[string]int // by caller's name: a caller has as many tokens as it likes
}

// New returns so many places, of which one caller may have each at a time.
func New(most, each int) *Places {
	return &Places{most: most, each: each, held: make(map[string]int)}
}

// Enter takes a place for the caller of ctx, until leave is called. It is false if
// there is none, or the caller has enough.
func (p *Places) Enter(ctx context.Context) (leave func(), ok bool) {
	name := ""
	if caller, ok := authn.FromContext(ctx); ok {
		name = caller.Owner()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all >= p.most || p.held[name] >= p.each {
		return nil, false
	}
	p.all++
	p.held[name]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.all--
		if p.held[name]--; p.held[name] == 0 {
			delete(p.held, name)
		}
	}, true
}
