package wire

import "regexp"

// CallsPath is followed by the key of calls that GET tells of, and DELETE ends.
const CallsPath = "/v1/calls"

// CallHeader names, on any request, the call that it is part of: its key, a dot, its
// id, each 64 hexadecimal digits. The key is what DELETE /v1/calls/{key} ends it
// by; two calls may share one, and then that ends neither. The id is the call's
// own, and random.
const CallHeader = "Berth-Call"

// Times of what an agent remembers of calls.
const (
	// CallGoneSeconds is how long a call whose connection broke is still the one
	// that is meant by its key.
	CallGoneSeconds = 10
	// CallEndedSeconds is how long a call is known to have been.
	CallEndedSeconds = 60
	// CallEarlySeconds is how long the end of a call that isn't known is kept for it.
	CallEarlySeconds = 10
)

// MaxCalls is how many calls of one key GET tells of.
const MaxCalls = 16

// Calls are the ids of the calls of a key that are under way, MaxCalls at most.
type Calls struct {
	IDs []string `json:"ids"`
}

var (
	callKey = regexp.MustCompile(`^[0-9a-f]{64}$`)
	call    = regexp.MustCompile(`^([0-9a-f]{64})\.([0-9a-f]{64})$`)
)

// ValidCallKey tells whether key has the form of a call's key, or id.
func ValidCallKey(key string) bool { return callKey.MatchString(key) }

// ParseCall reads the value of CallHeader.
func ParseCall(value string) (key, id string, ok bool) {
	m := call.FindStringSubmatch(value)
	if m == nil {
		return "", "", false
	}
	return m[1], m[2], true
}
