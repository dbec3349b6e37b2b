// Package artifact names exported files and commands' logs to the outside.
//
// An artifact's URI is artifact://berth/<token>, of a part of it
// artifact://berth/<token>?offset=<bytes>&length=<bytes>. The token is a handle,
// not a secret and not a signature: the namespace and the session that the file
// is of, and the 128 random bits by which that session's agent knows it. For a
// file that is kept in an artifact store they are followed by the store's name
// and the time at which it expires, which are the rest of where it is. So any
// replica can find it without a table, and who may read it is decided anew at
// each read.
package artifact

import (
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/gateway/session"
)

// URIPrefix comes before the token in a URI; URITemplate is its RFC 6570 form.
const (
	URIPrefix   = "artifact://berth/"
	URITemplate = URIPrefix + "{token}{?offset,length}"
)

// idLength is the length of an artifact's id: 128 bits in lower-case hex.
const idLength = 32

// MinExpiry and MaxExpiry are the times that a token can hold, in seconds since
// 1970: those of ten digits, which sort as numbers do, from 2001 to 2286.
const (
	MinExpiry = 1_000_000_000
	MaxExpiry = 9_999_999_999
)

// errMalformed is all that is said about a token that is none: for a reader it
// is as unknown as a random one.
var errMalformed = errors.New("not an artifact token")

// Handle is what a token says.
type Handle struct {
	session.Key
	// ID is the file's name in its agent or store.
	ID string
	// Store is the name of the artifact store that has the file; empty if the
	// session's agent has it.
	Store string
	// Expiry is when a stored file expires, in seconds since 1970; 0 without Store.
	Expiry int64
}

// String is the token.
func (h Handle) String() string {
	token := h.Namespace + "." + h.Name + "." + h.ID
	if h.Store == "" {
		return token
	}
	return token + "." + h.Store + "." + strconv.FormatInt(h.Expiry, 10)
}

// URI is the MCP resource that the artifact is read as.
func (h Handle) URI() string { return URIPrefix + h.String() }

// Parse reads a token: three parts, of which the first two are DNS-1123 labels,
// or five, of which the fourth is one too. It accepts exactly what String makes.
func Parse(token string) (Handle, error) {
	parts := strings.SplitN(token, ".", 6)
	if len(parts) != 3 && len(parts) != 5 {
		return Handle{}, errMalformed
	}
	h := Handle{Key: session.Key{Namespace: parts[0], Name: parts[1]}, ID: parts[2]}
	if !session.ValidID(h.Namespace) || !session.ValidID(h.Name) || !ValidID(h.ID) {
		return Handle{}, errMalformed
	}
	if len(parts) == 3 {
		return h, nil
	}
	var ok bool
	h.Store = parts[3]
	if h.Expiry, ok = ParseExpiry(parts[4]); !ok || !session.ValidID(h.Store) {
		return Handle{}, errMalformed
	}
	return h, nil
}

// ParseExpiry reads a time as tokens hold it.
func ParseExpiry(s string) (seconds int64, ok bool) {
	if !expiry.MatchString(s) {
		return 0, false
	}
	return number(s), true
}

var expiry = regexp.MustCompile(`^[1-9][0-9]{9}$`)

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

// ValidID tells whether id has the form of an artifact's id.
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
