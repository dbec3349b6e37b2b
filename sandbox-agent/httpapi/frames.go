package httpapi

import (
	"encoding/binary"
	"net/http"
	"strings"
	"sync"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

func wantsFrames(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), wire.FramesType)
}

// frames answers with a command's output as it happens. Writing blocks while
// the reader doesn't read, and so slows the command. When the reader is gone, the
// request's context ends, and the command with it.
type frames struct {
	w http.ResponseWriter

	mu    sync.Mutex // a frame is written at once
	begun bool
	gone  bool
}

// Began implements shell.Follower: the caller sees that its command runs.
func (f *frames) Began() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.begin() {
		f.flush()
	}
}

// Output implements shell.Follower.
func (f *frames) Output(stream byte, p []byte) {
	for len(p) > 0 {
		n := min(len(p), wire.MaxFrame)
		f.write(stream, p[:n])
		p = p[n:]
	}
}

// end writes the last frame.
func (f *frames) end(kind byte, v any) { f.write(kind, wire.Encode(v)) }

// refuse ends with an error: an answer of its own if nothing was written yet.
func (f *frames) refuse(refusal *Refusal) *Refusal {
	f.mu.Lock()
	begun := f.begun
	f.mu.Unlock()
	if !begun {
		return refusal
	}
	f.end(wire.FrameError, wire.ErrorBody{Error: wire.ErrorDetail{Code: refusal.Code, Message: refusal.Message}})
	return nil
}

func (f *frames) write(kind byte, p []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone {
		return
	}
	f.begin()
	var header [wire.FrameHeader]byte
	header[0] = kind
	binary.BigEndian.PutUint32(header[1:], uint32(len(p)))
	if _, err := f.w.Write(header[:]); err != nil {
		f.gone = true
		return
	}
	if _, err := f.w.Write(p); err != nil {
		f.gone = true
		return
	}
	f.flush()
}

// begin writes the answer's header, once.
func (f *frames) begin() (first bool) {
	if f.begun {
		return false
	}
	f.begun = true
	h := f.w.Header()
	h.Set("Content-Type", wire.FramesType)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	f.w.WriteHeader(http.StatusOK)
	return true
}

func (f *frames) flush() {
	if err := http.NewResponseController(f.w).Flush(); err != nil {
		f.gone = true
	}
}
