package session

import (
	"errors"
	"net/http"
)

// Header carries the session ID. Nothing else chooses a session.
const Header = "X-Session-ID"

// MaxID is the longest session ID: a DNS-1123 label, because it is an object's name.
const MaxID = 63

// Errors of the header. They are the caller's to mend, so they say how.
var (
	ErrNoID    = errors.New("missing X-Session-ID header: send one with 1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or digit")
	ErrBadID   = errors.New("invalid X-Session-ID header: it must be 1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or digit")
	ErrManyIDs = errors.New("invalid X-Session-ID header: it must be sent once")
)

// Key is where a session's Sandbox is.
type Key struct{ Namespace, Name string }

func (k Key) String() string { return k.Namespace + "/" + k.Name }

// ValidID tells whether id is a DNS-1123 label.
func ValidID(id string) bool {
	if len(id) == 0 || len(id) > MaxID {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		case c == '-' && i > 0 && i < len(id)-1:
		default:
			return false
		}
	}
	return true
}

// FromHeader returns the session ID of a request.
func FromHeader(h http.Header) (string, error) {
	values := h.Values(Header)
	switch {
	case len(values) == 0 || (len(values) == 1 && values[0] == ""):
		return "", ErrNoID
	case len(values) > 1:
		return "", ErrManyIDs
	case !ValidID(values[0]):
		return "", ErrBadID
	}
	return values[0], nil
}
