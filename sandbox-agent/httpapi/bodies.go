package httpapi

import "net/http"

const (
	// largeBody is a body that takes room while its request is served. Smaller ones
	// are as many as requests may wait.
	largeBody = 64 << 10
	// maxBodies is how many bytes large bodies may hold together. A command holds its
	// own while it waits and runs; what is typed into a process, for 5 s at most.
	maxBodies = 16 << 20
	// decoding is how often a body is held while it is decoded: as it came, in a
	// buffer that grew, and as a string.
	decoding = 3
)

// bodies are the rooms of large bodies: that of input is its own, since a command
// may wait for what is typed into a process.
type bodies struct{ commands, input *unread }

func newBodies() bodies { return bodies{newRoom(maxBodies), newRoom(maxBodies)} }

// readInto is readJSON of a body that may be large. It waits for room; held is given
// back once what was decoded is needed no more.
func readInto(w http.ResponseWriter, r *http.Request, in *unread, limit int64, v any) (held *share, _ *Refusal) {
	size := r.ContentLength
	if size > limit {
		return nil, tooLarge(limit)
	}
	if size < 0 {
		size = limit
	}
	if size > largeBody {
		var err error
		if held, err = in.take(r.Context(), decoding*size); err != nil {
			return nil, gone(err)
		}
	}
	if refusal := readJSON(w, r, limit, v); refusal != nil {
		held.release()
		return nil, refusal
	}
	held.keep(size)
	return held, nil
}
