package upload

import (
	"errors"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/berth-dev/berth/sandbox-agent/filename"
)

// ErrName is matched by the error for a name that can't be made one of a file.
var ErrName = errors.New("name: can't be the name of a file")

// Name makes of what a caller calls a file a name that is safe to show, on any
// system: the last element of a path, with each run of white space, control and
// format characters, invalid bytes and < > : " | ? * as one _, without dots at
// its ends, of at most 255 bytes. Letters of any script are kept. It returns
// ErrName if nothing is left, and for the names of Windows devices.
func Name(raw string) (string, error) {
	name := path.Base(strings.ReplaceAll(strings.TrimSpace(raw), `\`, "/"))
	if name == "." || name == "/" {
		return "", ErrName
	}
	name = strings.Trim(replaceUnsafe(name), ".")
	name = strings.Trim(filename.Cut(name, filename.Max), ".")
	if name == "" || name == "_" || isDevice(name) {
		return "", ErrName
	}
	return name, nil
}

func replaceUnsafe(name string) string {
	var b strings.Builder
	inRun := false
	for i := 0; i < len(name); {
		r, size := utf8.DecodeRuneInString(name[i:])
		unsafe := isUnsafe(r) || r == utf8.RuneError && size == 1
		switch {
		case !unsafe:
			b.WriteString(name[i : i+size])
		case !inRun:
			b.WriteByte('_')
		}
		inRun = unsafe
		i += size
	}
	return b.String()
}

func isUnsafe(r rune) bool {
	return unicode.IsSpace(r) || unicode.In(r, unicode.Z, unicode.Cc, unicode.Cf) || strings.ContainsRune(`<>:"|?*`, r)
}

// isDevice tells whether Windows takes name for a device's: what follows the
// first dot doesn't count there.
func isDevice(name string) bool {
	stem, _, _ := strings.Cut(name, ".")
	stem = strings.ToUpper(stem)
	switch stem {
	case "CON", "PRN", "AUX", "NUL":
		return true
	}
	for _, port := range []string{"COM", "LPT"} {
		if digit, ok := strings.CutPrefix(stem, port); ok && utf8.RuneCountInString(digit) == 1 && strings.Contains("123456789¹²³", digit) {
			return true
		}
	}
	return false
}

// compound are extensions of two parts that stay together.
var compound = []string{".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst", ".d.ts", ".min.js"}

// splitExtension splits a name before its extension, which may be empty. Neither
// part of a name that has one is.
func splitExtension(name string) (stem, extension string) {
	for _, e := range compound {
		at := len(name) - len(e)
		if at > 0 && strings.EqualFold(name[at:], e) {
			return name[:at], name[at:]
		}
	}
	if at := strings.LastIndexByte(name, '.'); at > 0 {
		return name[:at], name[at:]
	}
	return name, ""
}

// numbered is the n-th name to try for a file: name, then name_2 and so on, with
// the number before the extension. It is at most 255 bytes long.
func numbered(name string, n int) string {
	if n == 1 {
		return name
	}
	number := "_" + strconv.Itoa(n)
	stem, extension := splitExtension(name)
	if len(number)+len(extension) >= filename.Max {
		stem, extension = name, "" // an extension as long as a name is none
	}
	return filename.Cut(stem, filename.Max-len(number)-len(extension)) + number + extension
}
