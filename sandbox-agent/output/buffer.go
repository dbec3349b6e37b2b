package output

import "github.com/berth-dev/berth/sandbox-agent/execlog"

// buffer keeps the first and the last bytes of a stream, at most limit
// together, and counts them all. Its memory grows with what is written, up to
// limit. It is not safe for concurrent use.
type buffer struct {
	head  []byte
	tail  []byte // a ring once it is full
	next  int    // where the ring goes on
	heads int    // capacity of head
	tails int    // capacity of tail
	total int64
}

// newBuffer returns a buffer of at most limit bytes.
func newBuffer(limit int) *buffer {
	heads := (limit + 1) / 2
	return &buffer{heads: heads, tails: limit - heads}
}

// Write keeps what there is room for. It never fails.
func (b *buffer) Write(p []byte) (int, error) {
	n := len(p)
	b.total += int64(n)
	if room := b.heads - len(b.head); room > 0 {
		k := min(room, len(p))
		b.head = append(b.head, p[:k]...)
		p = p[k:]
	}
	if b.tails == 0 || len(p) == 0 {
		return n, nil
	}
	if len(p) > b.tails {
		p = p[len(p)-b.tails:]
	}
	if b.tail == nil {
		b.tail = make([]byte, 0, b.tails) // who writes more than the head writes much
	}
	if room := b.tails - len(b.tail); room > 0 {
		k := min(room, len(p))
		b.tail = append(b.tail, p[:k]...)
		p = p[k:]
	}
	for len(p) > 0 {
		k := copy(b.tail[b.next:], p)
		b.next = (b.next + k) % b.tails
		p = p[k:]
	}
	return n, nil
}

// Stream is what was kept of a stream. When it wrote no more than fits, Tail
// is empty and Head is all of it.
type Stream struct {
	Head, Tail []byte
	Total      int64
	// Log holds all of it, nil when there is none (yet).
	Log *execlog.Log

	open func() *execlog.Log // nil: none is wanted
}

// Omitted is how many bytes of the stream are missing between Head and Tail.
func (s *Stream) Omitted() int64 { return s.Total - int64(len(s.Head)) - int64(len(s.Tail)) }

// Stream returns what was kept. The buffer must not be used afterwards.
func (b *buffer) Stream() Stream {
	s := Stream{Head: b.head, Tail: b.tail, Total: b.total}
	if b.next > 0 {
		s.Tail = append(append(make([]byte, 0, len(b.tail)), b.tail[b.next:]...), b.tail[:b.next]...)
	}
	if s.Omitted() == 0 {
		s.Head, s.Tail = append(s.Head, s.Tail...), nil
	}
	return s
}
