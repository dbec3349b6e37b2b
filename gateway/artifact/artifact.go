// Package artifact names exported files to the outside.
//
// An artifact's URI is artifact://berth/<token>, and the token is a handle, not a
// secret and not a signature: the namespace and the session that hold the file,
// and the 128 random bits by which that session's agent knows it. So any replica
// can find it without a table, and who may read it is decided anew at each read.
package artifact

import (
	"errors"
	"strings"

	"github.com/berth-dev/berth/gateway/session"
)

// URIPrefix comes before the token in a URI; URITemplate is its RFC 6570 form.
const (
	URIPrefix   = "artifact://berth/"
	URITemplate = URIPrefix + "{token}"
)

// idLength is the length of an agent's artifact id: 128 bits in lower-case hex.
const idLength = 32

// errMalformed is all that is said about a token that is none: for a reader it
// is as unknown as a random one.
var errMalformed = errors.New("not an artifact token")

// Handle is what a token says.
type Handle struct {
	session.Key
	// ID is the agent's name of the file.
	ID string
}

// String is the token.
func (h Handle) String() string { return h.Namespace + "." + h.Name + "." + h.ID }

// URI is the MCP resource that the artifact is read as.
func (h Handle) URI() string { return URIPrefix + h.String() }

// Parse reads a token: three parts, of which the first two are DNS-1123 labels.
// It accepts exactly what String makes.
func Parse(token string) (Handle, error) {
	namespace, rest, ok := strings.Cut(token, ".")
	if !ok {
		return Handle{}, errMalformed
	}
	name, id, ok := strings.Cut(rest, ".")
	if !ok || !session.ValidID(namespace) || !session.ValidID(name) || !ValidID(id) {
		return Handle{}, errMalformed
	}
	return Handle{Key: session.Key{Namespace: namespace, Name: name}, ID: id}, nil
}

// ParseURI reads a resource URI.
func ParseURI(uri string) (Handle, error) {
	token, ok := strings.CutPrefix(uri, URIPrefix)
	if !ok {
		return Handle{}, errMalformed
	}
	return Parse(token)
}

// ValidID tells whether id has the form of an agent's artifact id.
func ValidID(id string) bool {
	if len(id) != idLength {
		return false
	}
	for i := range len(id) {
		if c := id[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
