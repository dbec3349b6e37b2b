package output

import "github.com/berth-dev/berth/sandbox-agent/execlog"

// Recorder keeps one stream of a command: as much as an answer carries in
// memory, and once that is not all, all of it in a log. It is not safe for
// concurrent use.
type Recorder struct {
	buffer *buffer
	limit  int64
	open   func() *execlog.Log
	log    *execlog.Log
}

// NewRecorder returns a recorder that keeps limit bytes in memory. open makes
// its log; nil is for none.
func NewRecorder(limit int, open func() *execlog.Log) *Recorder {
	return &Recorder{buffer: newBuffer(limit), limit: int64(limit), open: open}
}

// Write keeps p. It never fails.
func (r *Recorder) Write(p []byte) (int, error) {
	if r.log == nil && r.open != nil && r.buffer.total+int64(len(p)) > r.limit {
		r.log = r.open()
		r.log.Append(r.buffer.head) // and the tail is no ring yet
		r.log.Append(r.buffer.tail)
	}
	if r.log != nil {
		r.log.Append(p)
	}
	return r.buffer.Write(p)
}

// Stream returns what was kept. The recorder must not be used afterwards.
func (r *Recorder) Stream() Stream {
	s := r.buffer.Stream()
	s.Log, s.open = r.log, r.open
	return s
}

// spill puts a stream that was kept whole into its log.
func (s *Stream) spill() {
	if s.Log == nil && s.open != nil {
		s.Log = s.open()
		s.Log.Append(s.Head)
		s.Log.Append(s.Tail)
	}
}
