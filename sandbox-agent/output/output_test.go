package output

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/berth-dev/berth/sandbox-agent/execlog"
)

func TestBuffer(t *testing.T) {
	for limit := range 12 {
		for total := range 40 {
			for _, step := range []int{1, 3, 7, 40} {
				all := []byte("abcdefghijklmnopqrstuvwxyz0123456789ABCD")[:total]
				b := newBuffer(limit)
				for rest := all; len(rest) > 0; {
					n, err := b.Write(rest[:min(step, len(rest))])
					if err != nil {
						t.Fatal(err)
					}
					rest = rest[n:]
				}
				s := b.Stream()
				kept := len(s.Head) + len(s.Tail)
				if s.Total != int64(total) || kept != min(limit, total) || !bytes.HasPrefix(all, s.Head) || !bytes.HasSuffix(all, s.Tail) {
					t.Fatalf("limit %d, %q in steps of %d: head %q, tail %q, total %d", limit, all, step, s.Head, s.Tail, s.Total)
				}
			}
		}
	}
}

func stream(limit int, data string) *Stream {
	b := newBuffer(limit)
	_, _ = b.Write([]byte(data)) // never fails
	s := b.Stream()
	return &s
}

func TestEncodeWithinBudgetIsExact(t *testing.T) {
	out, err := Encode(stream(100, "a\nb"), stream(100, "c\xff"), 1000)
	if out != (Text{String: "a\nb"}) || err != (Text{String: "c\uFFFD"}) {
		t.Errorf("got %+v and %+v", out, err)
	}
}

func TestEncodeCutsBetweenCharacters(t *testing.T) {
	for limit := 10; limit < 30; limit++ {
		out, _ := Encode(stream(limit, strings.Repeat("漢", 100)), &Stream{}, 1000)
		if strings.ContainsRune(out.String, utf8.RuneError) {
			t.Errorf("limit %d cut a character: %q", limit, out.String)
		}
		kept := strings.Count(out.String, "漢") * len("漢")
		if out.Omitted != int64(300-kept) {
			t.Errorf("limit %d: %d bytes kept, %d omitted, of 300", limit, kept, out.Omitted)
		}
	}
}

func TestEncodeSharesTheBudget(t *testing.T) {
	big := strings.Repeat("a", 10_000)
	out, err := Encode(stream(1<<20, big), stream(1<<20, "small"), 4000)
	if err.String != "small" || len(out.String) < 1500 || out.Omitted == 0 {
		t.Errorf("want the small stream whole and the rest for the big one, got %d and %q", len(out.String), err.String)
	}
}

// twice is what a result costs that is carried as JSON and as JSON in JSON.
func twice(t testing.TB, texts ...Text) int {
	t.Helper()
	total := 0
	for _, s := range texts {
		once, err := json.Marshal(s.String)
		if err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(string(once))
		if err != nil {
			t.Fatal(err)
		}
		total += len(once) + len(again)
	}
	return total
}

func FuzzEncode(f *testing.F) {
	f.Add([]byte("text"), []byte("\x00\x01\"\\<>&\u2028"), 10, 500, int64(100))
	f.Add(bytes.Repeat([]byte("\xe6\xbc"), 100), []byte("\xff\xfe"), 33, 700, int64(1<<20))
	f.Add(bytes.Repeat([]byte("a"), 1000), bytes.Repeat([]byte{1}, 1000), 1000, 1000, int64(1<<20))
	f.Fuzz(func(t *testing.T, a, b []byte, limit, budget int, logBytes int64) {
		limit, budget = min(max(limit, 1), 1<<16), min(max(budget, 2*noteCost), 1<<20)
		logs := newLogs(t, max(logBytes, 0))
		sa, sb := recorded(limit, a, logs, execlog.Stdout), recorded(limit, b, logs, execlog.Stderr)
		out, err := Encode(sa, sb, budget)
		if got := twice(t, out, err); got > budget+24 { // the quotes around
			t.Errorf("costs %d with a budget of %d", got, budget)
		}
		for _, s := range []Text{out, err} {
			if !utf8.ValidString(s.String) || s.Omitted < 0 {
				t.Errorf("%+v", s)
			}
		}
		if out.Omitted > sa.Total || err.Omitted > sb.Total {
			t.Errorf("omitted %d of %d and %d of %d", out.Omitted, sa.Total, err.Omitted, sb.Total)
		}
		for _, x := range []struct {
			stream *Stream
			text   Text
			all    []byte
		}{{sa, out, a}, {sb, err, b}} {
			if (x.stream.Log != nil) != (x.text.Omitted > 0) {
				t.Errorf("%d bytes are omitted, log %v", x.text.Omitted, x.stream.Log)
			}
			checkLog(t, logs, x.stream, x.all)
		}
	})
}
