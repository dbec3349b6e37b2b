package session

import (
	"net/http"
	"regexp"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// grammar is the contract's (R12).
var grammar = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// What is taken for a session ID is exactly what the contract's grammar and the
// API server take for a name.
func FuzzValidID(f *testing.F) {
	for _, s := range []string{"", "a", "-", "a-", "a--b", "A", "a.b", "a/b", "é", "a\n", "0", "a-0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := ValidID(s)
		// Go's $ also matches before nothing but the end: there is no final newline.
		if want := grammar.MatchString(s); got != want {
			t.Errorf("ValidID(%q) = %v, grammar says %v", s, got, want)
		}
		if got && len(validation.IsDNS1123Label(s)) != 0 {
			t.Errorf("ValidID(%q), which is no DNS-1123 label", s)
		}
	})
}

// Whatever a header holds, what comes out is a valid ID or an error.
func FuzzFromHeader(f *testing.F) {
	f.Add("a", "b", true)
	f.Add("", "", false)
	f.Fuzz(func(t *testing.T, one, two string, both bool) {
		h := http.Header{canonical: {one}}
		if both {
			h[canonical] = append(h[canonical], two)
		}
		id, err := FromHeader(h)
		if (err == nil) != (id != "") || err == nil && (!ValidID(id) || both) {
			t.Errorf("FromHeader(%q) = %q, %v", h, id, err)
		}
	})
}

// canonical is Header as net/http writes it.
var canonical = http.CanonicalHeaderKey(Header)
