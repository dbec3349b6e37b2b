package artifactstore

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"mime"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/berth-dev/berth/gateway/authn"
)

// Names of an object's metadata, without the x-amz-meta- of the header. The case
// is that of Go's canonical headers, which is how they come back.
const (
	metaOwner  = "Berth-Owner"
	metaName   = "Berth-Name"
	metaType   = "Berth-Type"
	metaDigest = "Berth-Sha256"
)

// nobody is the owner of a file of a session without an owner.
const nobody = "none"

// maxName is the longest name of a file, in bytes.
const maxName = 255

// ownerHash is how an owner is written: enough to compare with, and no list of
// who uses what for those who can list the bucket.
func ownerHash(owner string) string {
	if owner == "" {
		return nobody
	}
	sum := sha256.Sum256([]byte("berth artifact owner\x00" + owner))
	return hex.EncodeToString(sum[:])
}

// owns is authn.Caller.Owns for an owner's hash.
func owns(caller *authn.Caller, hash string) bool {
	if hash == nobody {
		return true
	}
	mine := caller.Owner()
	return mine != "" && subtle.ConstantTimeCompare([]byte(ownerHash(mine)), []byte(hash)) == 1
}

// metadata is what an object says of its file. A header is ASCII and a name is
// not, so it is percent-encoded.
func (f *File) metadata() map[string]string {
	return map[string]string{
		metaOwner: ownerHash(f.Owner), metaName: url.PathEscape(f.Name), metaType: f.MIMEType, metaDigest: f.SHA256,
	}
}

// errForeign is an object at a key of ours whose metadata is not ours.
var errForeign = errors.New("an object's metadata is not what the gateway writes")

// described is what an object's metadata says of its file.
type described struct {
	owner    string // its hash
	name     string
	mimeType string
	digest   string // SHA-256
}

// readMetadata is the reverse of metadata. It believes nothing: others may write
// to the bucket.
func readMetadata(m map[string]string) (*described, error) {
	d := &described{owner: m[metaOwner], mimeType: m[metaType], digest: m[metaDigest]}
	var err error
	if d.name, err = url.PathUnescape(m[metaName]); err != nil {
		return nil, errForeign
	}
	if d.name == "" || len(d.name) > maxName || !utf8.ValidString(d.name) || !validType(d.mimeType) ||
		!validDigest(d.digest) || d.owner != nobody && !validDigest(d.owner) {
		return nil, errForeign
	}
	return d, nil
}

// validType tells whether s is a MIME type that can be a header: the parser lets
// line ends and other bytes pass.
func validType(s string) bool {
	_, _, err := mime.ParseMediaType(s)
	return err == nil && len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// validDigest tells whether s is a SHA-256 in lower-case hex.
func validDigest(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == sha256.Size && hex.EncodeToString(raw) == s
}
