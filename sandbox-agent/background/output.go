package background

import (
	"context"
	"time"
	"unicode/utf8"

	"github.com/berth-dev/berth/sandbox-agent/output"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// Query says which part of a process's output is wanted.
type Query struct {
	Offset int64 // from the start; negative: from the end
	Limit  int   // bytes, at least 1
	// Wait is for how long to wait for output beyond Offset, or the end.
	Wait time.Duration
	// Room is called once there is output, before it is read. Its error is Output's.
	// It may be nil.
	Room func(ctx context.Context) error
}

// Output returns a part of what a process wrote.
func (r *Registry) Output(ctx context.Context, id string, q Query) (wire.ProcessOutput, error) {
	e, err := r.find(id)
	if err != nil {
		return wire.ProcessOutput{}, err
	}
	timer := time.NewTimer(q.Wait)
	defer timer.Stop()
	over := q.Wait <= 0
	exact := q.Offset >= 0
	for {
		e.mu.Lock()
		if q.Offset < 0 {
			q.Offset = max(e.ring.start(), e.ring.end+q.Offset)
		}
		if room := q.Room; room != nil && e.ring.end > q.Offset {
			e.mu.Unlock()
			if err := room(ctx); err != nil {
				return wire.ProcessOutput{}, err
			}
			q.Room = nil
			continue
		}
		o, err := e.read(q, exact)
		changed := e.wait()
		e.mu.Unlock()
		if err != nil || o.Output != "" || !o.Running || over {
			return o, err
		}
		select {
		case <-changed:
		case <-timer.C:
			over = true
		case <-r.closing:
			over = true
		case <-ctx.Done():
			return wire.ProcessOutput{}, ctx.Err()
		}
	}
}

// read returns what is there at q.Offset. exact says that a character begins
// there. The caller holds e.mu.
func (e *entry) read(q Query, exact bool) (wire.ProcessOutput, error) {
	o := wire.ProcessOutput{Offset: q.Offset, NextOffset: q.Offset, Running: e.running.Load(), ExitCode: e.code}
	if start := e.ring.start(); o.Offset < start {
		o.Offset, exact = start, false
	}
	left := e.ring.end - o.Offset
	if left <= 0 {
		o.NextOffset = o.Offset
		return o, nil
	}
	if e.ring.file == nil {
		return o, ErrNotFound // made room for another
	}
	b, err := e.ring.read(o.Offset, int(min(left, int64(q.Limit)+2*(utf8.UTFMax-1))))
	if err != nil {
		return o, err
	}
	if !exact && o.Offset > 0 {
		n := rest(b)
		o.Offset += int64(n)
		b = b[n:]
	}
	n := border(b, q.Limit, e.running.Load())
	o.Output, o.NextOffset = output.Valid(b[:n]), o.Offset+int64(n)
	return o, nil
}
