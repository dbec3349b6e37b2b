package background

import (
	"os"
)

// ring keeps the newest bytes of a stream in a file. Offsets count from the
// stream's first byte that was kept. It is not safe for concurrent use.
type ring struct {
	file    *os.File // nil: nothing can be kept
	size    int64
	end     int64 // offset after the newest byte
	dropped int64 // bytes for which the disk had no room
}

// start is the offset of the oldest byte that is kept.
func (r *ring) start() int64 { return max(0, r.end-r.size) }

// write keeps p. What the disk has no room for is counted and gone: a process
// is not to wait for it.
func (r *ring) write(p []byte) {
	for len(p) > 0 {
		if r.file == nil {
			r.dropped += int64(len(p))
			return
		}
		at := r.end % r.size
		n, err := r.file.WriteAt(p[:min(int64(len(p)), r.size-at)], at)
		r.end += int64(n)
		p = p[n:]
		if err != nil {
			r.dropped += int64(len(p))
			return
		}
	}
}

// read returns n bytes from offset on. They must be kept.
func (r *ring) read(offset int64, n int) ([]byte, error) {
	b := make([]byte, n)
	at := offset % r.size
	k := int(min(int64(n), r.size-at))
	if _, err := r.file.ReadAt(b[:k], at); err != nil {
		return nil, err
	}
	if k < n {
		if _, err := r.file.ReadAt(b[k:], 0); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (r *ring) close() {
	if r.file != nil {
		r.file.Close()
		r.file = nil
	}
}
