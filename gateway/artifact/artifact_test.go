package artifact

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/gateway/session"
)

var id = strings.Repeat("0a", 16)

func TestTokenRoundTrip(t *testing.T) {
	t.Parallel()
	label := "a" + strings.Repeat("-", 61) + "z"
	h := Handle{Key: session.Key{Namespace: label, Name: label}, ID: id}
	stored := Handle{Key: h.Key, ID: id, Store: label, Expiry: MinExpiry}
	latest := Handle{Key: h.Key, ID: id, Store: "s", Expiry: MaxExpiry}
	for query, want := range map[string]Part{
		"":                              {},
		"?offset=0":                     {},
		"?offset=1":                     {Offset: 1},
		"?length=1":                     {Length: 1},
		"?offset=0&length=8388608":      {Length: 8 << 20},
		"?offset=999999999999999999":    {Offset: 999999999999999999},
		"?offset=20&length=10":          {Offset: 20, Length: 10},
		"?length=999999999999999999":    {Length: 999999999999999999},
		"?offset=100000000000&length=9": {Offset: 100000000000, Length: 9},
	} {
		for _, h := range []Handle{h, stored, latest} {
			got, part, err := ParseURI(h.URI() + query)
			if err != nil || got != h || part != want {
				t.Errorf("ParseURI(%q) = %+v, %+v, %v; want %+v", h.URI()+query, got, part, err, want)
			}
		}
	}
}

// One URI for each part: what the template doesn't expand to is no artifact's.
func TestMalformedParts(t *testing.T) {
	t.Parallel()
	for _, query := range []string{
		"?", "?&", "?offset", "?offset=", "?length=", "?length=0", "?offset=-1", "?offset=+1", "?offset=01", "?offset=00",
		"?offset=1.5", "?offset=1e3", "?offset=0x10", "?offset=1_000", "?offset= 1", "?offset=1 ", "?offset=%31", "?offset=\u0661",
		"?offset=1000000000000000000", "?length=1000000000000000000", "?offset=9223372036854775808",
		"?length=1&offset=1", "?offset=1&offset=1", "?length=1&length=1", "?offset=1&", "?&length=1", "?offset=1length=1",
		"?offset=1&&length=1", "?offset=1&length=", "?offset=1&length=1&", "?offset=1&length=1&x=1", "?offset=1;length=1", "?x=1", "?x",
		"?Offset=1", "?offset=1#", "#offset=1", "?offset=1\n", "??offset=1", "?offset=1?length=1", "&offset=1", "/?offset=1",
	} {
		uri := URIPrefix + "n.s." + id + query
		if h, part, err := ParseURI(uri); err == nil {
			t.Errorf("ParseURI(%q) = %+v, %+v, want an error", uri, h, part)
		}
	}
}

func TestMalformedTokens(t *testing.T) {
	t.Parallel()
	for _, token := range []string{
		"", ".", "..", "n.s", "n.s.", "n.s." + id[1:], "n.s." + id + "0", "n.s." + strings.ToUpper(id),
		"n..s." + id, ".s." + id, "n.." + id, "n.s.x." + id, "N.s." + id, "n.s-." + id, "n/s." + id,
		" n.s." + id, "n.s." + id + "\n", "n.s." + strings.Repeat("0g", 16), "n.é." + id,
		"n.s." + id + ".", "n.s." + id + ".a", "n.s." + id + ".a.", "n.s." + id + "..1000000000", "n.s." + id + ".A.1000000000",
		"n.s." + id + ".a.999999999", "n.s." + id + ".a.0999999999", "n.s." + id + ".a.10000000000", "n.s." + id + ".a.-1000000000",
		"n.s." + id + ".a.1e99999999", "n.s." + id + ".a.1000000000.", "n.s." + id + ".a.1000000000.x", "n.s." + id + ".a.1000000000\n",
		"n.s." + id + ".a/b.1000000000", "n.s." + id + ".a.b.1000000000", "n.s." + id[1:] + ".a.1000000000", "n.s." + id + ".1000000000.a",
		"n.s." + id + ".a.\u0661000000000",
	} {
		if h, err := Parse(token); err == nil {
			t.Errorf("Parse(%q) = %+v, want an error", token, h)
		}
	}
	for _, uri := range []string{"", id, "n.s." + id, "artifact://Berth/n.s." + id, "ARTIFACT://berth/n.s." + id, "artifact://berth/n.s." + id + "?x"} {
		if h, part, err := ParseURI(uri); err == nil {
			t.Errorf("ParseURI(%q) = %+v, %+v, want an error", uri, h, part)
		}
	}
}

// What is parsed is ASCII, and exactly what String writes.
func FuzzParse(f *testing.F) {
	f.Add("n.s." + id)
	f.Add("n.s.x." + id)
	f.Add("n.s." + id + ".a.1796083200")
	f.Add(strings.Repeat(".", 100))
	f.Fuzz(func(t *testing.T, token string) {
		h, err := Parse(token)
		if err != nil {
			return
		}
		if h.String() != token {
			t.Errorf("Parse(%q) writes %q", token, h)
		}
		if !session.ValidID(h.Namespace) || !session.ValidID(h.Name) || !ValidID(h.ID) ||
			(h.Store == "") != (h.Expiry == 0) || h.Store != "" && (!session.ValidID(h.Store) || h.Expiry < MinExpiry || h.Expiry > MaxExpiry) {
			t.Errorf("Parse(%q) = %+v", token, h)
		}
	})
}

// A URI is parsed only if it is one of those of what it parses to.
func FuzzParseURI(f *testing.F) {
	f.Add(URIPrefix + "n.s." + id)
	f.Add("artifact://berth//n.s." + id)
	f.Add(URIPrefix + "n.s." + id + "?offset=0")
	f.Add(URIPrefix + "n.s." + id + ".a.1796083200?offset=0")
	f.Add(URIPrefix + "n.s." + id + "?length=18")
	f.Add(URIPrefix + "n.s." + id + "?offset=20&length=8388608")
	f.Add(URIPrefix + "n.s." + id + "?length=1&offset=2")
	f.Fuzz(func(t *testing.T, uri string) {
		h, p, err := ParseURI(uri)
		if err != nil {
			return
		}
		if p.Offset < 0 || p.Length < 0 || p.Offset+p.Length < 0 {
			t.Errorf("ParseURI(%q) = %+v", uri, p)
		}
		written := []string{
			"", fmt.Sprintf("?offset=%d", p.Offset), fmt.Sprintf("?length=%d", p.Length), fmt.Sprintf("?offset=%d&length=%d", p.Offset, p.Length),
		}
		if query, ok := strings.CutPrefix(uri, h.URI()); !ok || !slices.Contains(written, query) {
			t.Errorf("ParseURI(%q) = %+v, %+v", uri, h, p)
		}
	})
}
