package artifact

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/gateway/session"
)

var id = strings.Repeat("0a", 16)

func TestTokenRoundTrip(t *testing.T) {
	t.Parallel()
	label := "a" + strings.Repeat("-", 61) + "z"
	h := Handle{session.Key{Namespace: label, Name: label}, id}
	got, err := ParseURI(h.URI())
	if err != nil || got != h {
		t.Errorf("ParseURI(%q) = %+v, %v", h.URI(), got, err)
	}
}

func TestMalformedTokens(t *testing.T) {
	t.Parallel()
	for _, token := range []string{
		"", ".", "..", "n.s", "n.s.", "n.s." + id[1:], "n.s." + id + "0", "n.s." + strings.ToUpper(id),
		"n..s." + id, ".s." + id, "n.." + id, "n.s.x." + id, "N.s." + id, "n.s-." + id, "n/s." + id,
		" n.s." + id, "n.s." + id + "\n", "n.s." + strings.Repeat("0g", 16), "n.é." + id,
	} {
		if h, err := Parse(token); err == nil {
			t.Errorf("Parse(%q) = %+v, want an error", token, h)
		}
	}
	for _, uri := range []string{"", id, "n.s." + id, "artifact://Berth/n.s." + id, "ARTIFACT://berth/n.s." + id, "artifact://berth/n.s." + id + "?x"} {
		if h, err := ParseURI(uri); err == nil {
			t.Errorf("ParseURI(%q) = %+v, want an error", uri, h)
		}
	}
}

// What is parsed is ASCII, and exactly what String writes.
func FuzzParse(f *testing.F) {
	f.Add("n.s." + id)
	f.Add("n.s.x." + id)
	f.Add(strings.Repeat(".", 100))
	f.Fuzz(func(t *testing.T, token string) {
		h, err := Parse(token)
		if err != nil {
			return
		}
		if h.String() != token {
			t.Errorf("Parse(%q) writes %q", token, h)
		}
		if !session.ValidID(h.Namespace) || !session.ValidID(h.Name) || !ValidID(h.ID) {
			t.Errorf("Parse(%q) = %+v", token, h)
		}
	})
}

// A URI is parsed only if it is the URI of what it parses to.
func FuzzParseURI(f *testing.F) {
	f.Add(URIPrefix + "n.s." + id)
	f.Add("artifact://berth//n.s." + id)
	f.Fuzz(func(t *testing.T, uri string) {
		if h, err := ParseURI(uri); err == nil && h.URI() != uri {
			t.Errorf("ParseURI(%q) writes %q", uri, h.URI())
		}
	})
}
