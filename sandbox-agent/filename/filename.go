// Package filename makes names of files that fit.
package filename

import (
	"crypto/rand"
	"encoding/hex"
	"regexp"
	"unicode/utf8"
)

// Max is the longest name of a file, in bytes.
const Max = 255

// Cut returns at most limit bytes of name, whole characters.
func Cut(name string, limit int) string {
	if len(name) <= limit {
		return name
	}
	for limit > 0 && !utf8.RuneStart(name[limit]) {
		limit--
	}
	return name[:limit]
}

// What a file with a temporary name is written for.
const (
	Upload = "upload"
	Write  = "write"
)

var temporary = regexp.MustCompile(`^\.(?s:.*)\.(` + Upload + `|` + Write + `)-[0-9a-f]{16}$`)

// Temporary returns a hidden name for what is to be called name:
// ".<name>.<purpose>-<16 hex digits>".
func Temporary(name, purpose string) string {
	var b [8]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	end := "." + purpose + "-" + hex.EncodeToString(b[:])
	return "." + Cut(name, Max-len(".")-len(end)) + end
}

// IsTemporary tells whether Temporary makes such names.
func IsTemporary(name string) bool { return temporary.MatchString(name) }
