// Package artifact names exported files and commands' logs to the outside.
//
// An artifact's URI is artifact://berth/<token>, of a part of it
// artifact://berth/<token>?offset=<bytes>&length=<bytes>. The token is a handle,
// not a secret and not a signature: the namespace and the session that hold the
// file, and the 128 random bits by which that session's agent knows it. So any
// replica can find it without a table, and who may read it is decided anew at
// each read.
package artifact

import (
	"errors"
	"regexp"
	"strings"

	"github.com/berth-dev/berth/gateway/session"
)

// URIPrefix comes before the token in a URI; URITemplate is its RFC 6570 form.
const (
	URIPrefix   = "artifact://berth/"
	URITemplate = URIPrefix + "{token}{?offset,length}"
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

// Part is which bytes of an artifact a URI means. The zero value is all of them.
type Part struct {
	Offset int64
	// Length is how many bytes at most; 0 is up to the end.
	Length int64
}

// ParseURI reads a resource URI. It accepts exactly what URITemplate expands to:
// offset before length, each at most once, in decimal without leading zeros, and
// no length of 0.
func ParseURI(uri string) (Handle, Part, error) {
	rest, ok := strings.CutPrefix(uri, URIPrefix)
	if !ok {
		return Handle{}, Part{}, errMalformed
	}
	token, query, asks := strings.Cut(rest, "?")
	handle, err := Parse(token)
	if err != nil {
		return Handle{}, Part{}, err
	}
	part := Part{}
	if asks {
		part, err = parsePart(query)
	}
	if err != nil {
		return Handle{}, Part{}, err
	}
	return handle, part, nil
}

// query is what follows the question mark. Numbers of 18 digits are far from
// overflowing, and so is the sum of two.
var query = regexp.MustCompile(`^(?:offset=(0|[1-9][0-9]{0,17}))?(&)?(?:length=([1-9][0-9]{0,17}))?$`)

func parsePart(s string) (Part, error) {
	m := query.FindStringSubmatch(s)
	if m == nil || s == "" || (m[2] != "") != (m[1] != "" && m[3] != "") {
		return Part{}, errMalformed
	}
	return Part{Offset: number(m[1]), Length: number(m[3])}, nil
}

// number reads digits; none are 0.
func number(digits string) (n int64) {
	for _, c := range []byte(digits) {
		n = n*10 + int64(c-'0')
	}
	return n
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
