package filename

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		limit int
		want  string
	}{
		{"abc", 4, "abc"}, {"abc", 3, "abc"}, {"abc", 2, "ab"}, {"abc", 0, ""},
		{"aéb", 3, "aé"}, {"aéb", 2, "a"}, {"é", 1, ""}, {"\x80\x80", 1, ""},
	} {
		if got := Cut(c.name, c.limit); got != c.want {
			t.Errorf("%d bytes of %q are %q, want %q", c.limit, c.name, got, c.want)
		}
	}
}

func TestTemporary(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"f", "a\nb", strings.Repeat("n", 229), strings.Repeat("n", 230), strings.Repeat("n", 231), strings.Repeat("é", 127), strings.Repeat("\x80", 255)} {
		for _, purpose := range []string{Upload, Write} {
			got := Temporary(name, purpose)
			if len(got) > Max || !IsTemporary(got) || got == Temporary(name, purpose) || utf8.ValidString(got) != (utf8.ValidString(name) || got[1] == '.') {
				t.Errorf("%q is written as %q for %s", name, got, purpose)
			}
		}
	}
}

func TestIsTemporary(t *testing.T) {
	t.Parallel()
	const digits = "0123456789abcdef"
	for name, want := range map[string]bool{
		".a.upload-" + digits: true, ".a.write-" + digits: true, "..write-" + digits: true,
		"a.upload-" + digits: false, ".upload-" + digits: false, ".a.other-" + digits: false,
		".a.upload-" + digits + "0": false, ".a.upload-0123456789ABCDEF": false, ".a.upload-" + digits + "\n": false,
	} {
		if IsTemporary(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}
