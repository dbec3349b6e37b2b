package front

import (
	"context"
	"sync"

	"github.com/berth-dev/berth/gateway/authn"
)

// places are what callers hold while they are sent something.
type places struct {
	most, each int

	mu   sync.Mutex
	all  int
	held map[string]int // by caller's name: a caller has as many tokens as it likes
}

func newPlaces(most, each int) *places {
	return &places{most: most, each: each, held: make(map[string]int)}
}

// enter takes a place for the caller of ctx, until leave is called. It is false if
// there is none, or the caller has enough.
func (p *places) enter(ctx context.Context) (leave func(), ok bool) {
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
