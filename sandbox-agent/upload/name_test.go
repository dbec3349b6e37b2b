package upload

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/berth-dev/berth/sandbox-agent/filename"
	"github.com/berth-dev/berth/test/uploadcases"
)

func TestName(t *testing.T) {
	t.Parallel()
	for _, c := range uploadcases.Names {
		if got, err := Name(c.Raw); err != nil || got != c.Want {
			t.Errorf("%s: Name(%q) = %q, %v, want %q", c.Case, c.Raw, got, err, c.Want)
		}
	}
}

func TestNameRefuses(t *testing.T) {
	t.Parallel()
	for _, raw := range uploadcases.Refused() {
		if got, err := Name(raw); !errors.Is(err, ErrName) {
			t.Errorf("Name(%q) = %q, %v, want ErrName", raw, got, err)
		}
	}
}

func TestNumbered(t *testing.T) {
	t.Parallel()
	for _, c := range uploadcases.Collisions {
		if got := numbered(c.Name, c.N); got != c.Want {
			t.Errorf("%s: numbered(%q, %d) = %q, want %q", c.Case, c.Name, c.N, got, c.Want)
		}
	}
}

func FuzzName(f *testing.F) {
	for _, s := range []string{"a.txt", "../x", "CON.txt", " .a. ", "a\u202eb", strings.Repeat("é", 200) + ".tar.gz", "\xff\xff", "a?*b"} {
		f.Add(s, 2)
	}
	f.Fuzz(func(t *testing.T, raw string, n int) {
		name, err := Name(raw)
		if err != nil {
			return
		}
		check := func(s string) {
			if s == "" || len(s) > filename.Max || !utf8.ValidString(s) || strings.ContainsAny(s, "/\\\x00<>:\"|?*\n \u202e") || s[0] == '.' || s == "_" {
				t.Errorf("%q became %q", raw, s)
			}
		}
		check(name)
		if again, err := Name(name); err != nil || again != name {
			t.Errorf("%q became %q, and that %q, %v", raw, name, again, err)
		}
		if n = 2 + (n&0xffff)%999; n < 2 {
			return
		}
		second := numbered(name, n)
		check(second)
		if second == name || second == numbered(name, n+1) {
			t.Errorf("%q numbered %d is %q", name, n, second)
		}
	})
}
