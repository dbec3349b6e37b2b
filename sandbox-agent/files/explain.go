package files

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// shownText is how much of a file's text a message shows.
const shownText = 240

// numbered is how tools print a line: its number, then a tab, an arrow, a bar or
// a colon.
var numbered = regexp.MustCompile(`(?m)^[ \t]*[0-9]+(\t|→|\||: ?)`)

// explain says why e.Old may not be in content: what usually is the cause.
func explain(content []byte, e wire.Edit) string {
	for _, attempt := range []struct {
		old, cause string
	}{
		{numbered.ReplaceAllString(e.Old, ""), "old begins its lines with their numbers: leave those out; the text is"},
		{unescape.Replace(e.Old), `old holds \n, \t or \" as two characters each: give the characters themselves; the text is`},
		{plain.Replace(e.Old), "old has other quotation marks, dashes or spaces than the file; the text is"},
	} {
		if attempt.old == e.Old || attempt.old == "" {
			continue
		}
		if at := bytes.Index(content, []byte(attempt.old)); at >= 0 {
			return fmt.Sprintf("%s at line %d", attempt.cause, lineAt(content, at))
		}
	}
	if cause := explainSpace(content, e.Old); cause != "" {
		return cause
	}
	if at := bytes.Index(content, []byte(e.New)); at >= 0 && strings.TrimSpace(e.New) != "" {
		return fmt.Sprintf("but new is, at line %d: this edit may have been made already", lineAt(content, at))
	}
	return explainLines(content, e.Old)
}

var (
	unescape = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\"`, `"`, `\\`, `\`)
	plain    = strings.NewReplacer("“", `"`, "”", `"`, "‘", "'", "’", "'", "–", "-", "—", "-", "\u00a0", " ", "\u202f", " ")
)

// explainSpace finds old in content if white space doesn't count.
func explainSpace(content []byte, old string) string {
	wanted := withoutSpace([]byte(old))
	if len(wanted) == 0 {
		return ""
	}
	at := bytes.Index(withoutSpace(content), wanted)
	if at < 0 {
		return ""
	}
	start, end := spanWithSpace(content, at, len(wanted))
	found, trimmed := content[start:end], bytes.TrimSpace([]byte(old))
	cause := "in white space"
	switch {
	case bytes.Equal(found, trimmed):
		cause = "in the white space at its beginning or end"
	case sameLines(found, trimmed, trimReturn) && bytes.Contains(found, []byte("\r\n")):
		return fmt.Sprintf(`the lines of the file, from line %d on, end in \r\n, those of old in \n`, lineAt(content, start))
	case sameLines(found, trimmed, trimReturn):
		return fmt.Sprintf(`the lines of old end in \r\n, those of the file, from line %d on, in \n`, lineAt(content, start))
	case sameLines(found, trimmed, trimSpaceRight):
		cause = "in white space at the ends of lines"
	case sameLines(found, trimmed, bytes.TrimSpace):
		cause = "in indentation"
		if bytes.Contains(found, []byte("\t")) != bytes.Contains(trimmed, []byte("\t")) {
			cause += " (tabs and spaces)"
		}
	}
	return fmt.Sprintf("it differs %s from line %d on, which is %s", cause, lineAt(content, start), excerpt(content[start:end]))
}

func trimReturn(b []byte) []byte { return bytes.TrimSuffix(b, []byte("\r")) }

func trimSpaceRight(b []byte) []byte { return bytes.TrimRightFunc(b, unicode.IsSpace) }

// sameLines tells whether the lines of both are the same once each is trimmed. It
// holds none of them: there may be millions.
func sameLines(a, b []byte, trim func([]byte) []byte) bool {
	for {
		lineA, restA, moreA := bytes.Cut(a, newline)
		lineB, restB, moreB := bytes.Cut(b, newline)
		if moreA != moreB || !bytes.Equal(trim(lineA), trim(lineB)) {
			return false
		}
		if !moreA {
			return true
		}
		a, b = restA, restB
	}
}

func isSpace(b byte) bool { return b == ' ' || b >= '\t' && b <= '\r' }

func withoutSpace(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for _, c := range b {
		if !isSpace(c) {
			out = append(out, c)
		}
	}
	return out
}

// spanWithSpace returns where those n bytes of content are that begin at the
// at-th, if white space doesn't count.
func spanWithSpace(content []byte, at, n int) (start, end int) {
	for i, c := range content {
		if isSpace(c) {
			continue
		}
		if at == 0 {
			start = i
		}
		if at--; at == -n {
			return start, i + 1
		}
	}
	return start, len(content)
}

// explainLines finds the first line of old that is in content at all, and where
// what follows differs.
func explainLines(content []byte, old string) string {
	const (
		most = 64   // lines of old that are searched
		held = 4096 // and compared
	)
	lines := strings.SplitN(old, "\n", held+1)
	lines = lines[:min(len(lines), held)]
	for i, line := range lines[:min(len(lines), most)] {
		line = strings.TrimSpace(line)
		at := bytes.Index(content, []byte(line))
		if len(line) < 4 || at < 0 { // a brace is everywhere
			continue
		}
		there := lineAt(content, at)
		rest := content[at:]
		for j := i + 1; j < len(lines); j++ {
			next := bytes.IndexByte(rest, '\n')
			if next < 0 {
				return fmt.Sprintf("its line %d is line %d of the file, which ends before its line %d", i+1, there, j+1)
			}
			rest = rest[next+1:]
			is, _, _ := bytes.Cut(rest, newline)
			if string(bytes.TrimSpace(is)) != strings.TrimSpace(lines[j]) {
				return fmt.Sprintf("its line %d is line %d of the file, but line %d, for its line %d, is %s", i+1, there, there+int64(j-i), j+1, excerpt(is))
			}
		}
		is, _, _ := bytes.Cut(content[bytes.LastIndexByte(content[:at], '\n')+1:], newline)
		return fmt.Sprintf("its line %d is in line %d of the file, which is %s", i+1, there, excerpt(is))
	}
	return "no line of it is; read the file again"
}

// excerpt shows the beginning of a text, safely.
func excerpt(text []byte) string {
	more := ""
	if len(text) > shownText {
		text, more = wholeRunes(text[:shownText]), "..."
	}
	if !utf8.Valid(text) {
		return strconv.QuoteToASCII(string(text)) + more
	}
	return strconv.Quote(string(text)) + more
}
