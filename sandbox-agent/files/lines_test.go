package files

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

func total(n int64) *int64 { return &n }

// long is a line that is cut after kept bytes.
func long(n int) string { return strings.Repeat("x", n) }

func TestReadLines(t *testing.T) {
	t.Parallel()
	const most = wire.MaxFileLine
	for name, c := range map[string]struct {
		content string
		want    Lines
		data    string
		facts   wire.FileLineFacts
	}{
		"an empty file":           {"", Lines{First: 1}, "", wire.FileLineFacts{First: 1, Total: total(0)}},
		"a newline":               {"\n", Lines{First: 1}, "\n", wire.FileLineFacts{First: 1, Count: 1, Total: total(1)}},
		"all":                     {"a\nb\n", Lines{First: 1}, "a\nb\n", wire.FileLineFacts{First: 1, Count: 2, Total: total(2)}},
		"no newline at the end":   {"a\nb", Lines{First: 1}, "a\nb", wire.FileLineFacts{First: 1, Count: 2, Total: total(2)}},
		"from the second on":      {"a\nb\nc", Lines{First: 2}, "b\nc", wire.FileLineFacts{First: 2, Count: 2, Offset: 2, Total: total(3)}},
		"the last":                {"a\nb\nc", Lines{First: 3}, "c", wire.FileLineFacts{First: 3, Count: 1, Offset: 4, Total: total(3)}},
		"so many":                 {"a\nb\nc\n", Lines{First: 1, Count: 2}, "a\nb\n", wire.FileLineFacts{First: 1, Count: 2, Total: total(3), Next: 3, NextOffset: 4}},
		"as many as there are":    {"a\nb\n", Lines{First: 1, Count: 2}, "a\nb\n", wire.FileLineFacts{First: 1, Count: 2, Total: total(2)}},
		"more than there are":     {"a\nb\n", Lines{First: 1, Count: 3}, "a\nb\n", wire.FileLineFacts{First: 1, Count: 2, Total: total(2)}},
		"carriage returns":        {"a\r\nb\r\n", Lines{First: 2}, "b\r\n", wire.FileLineFacts{First: 2, Count: 1, Offset: 3, Total: total(2), CRLF: true}},
		"a lone carriage return":  {"a\rb\n", Lines{First: 1}, "a\rb\n", wire.FileLineFacts{First: 1, Count: 1, Total: total(1)}},
		"just a carriage return":  {"\r\n\r", Lines{First: 1}, "\r\n\r", wire.FileLineFacts{First: 1, Count: 2, Total: total(2), CRLF: true}},
		"a line that just fits":   {"ab\ncd\n", Lines{First: 1, Limit: 6}, "ab\ncd\n", wire.FileLineFacts{First: 1, Count: 2, Total: total(2)}},
		"one that doesn't":        {"ab\ncd\n", Lines{First: 1, Limit: 5}, "ab\n", wire.FileLineFacts{First: 1, Count: 1, Total: total(2), Next: 2, NextOffset: 3}},
		"the first doesn't":       {"abcd\ne\n", Lines{First: 1, Limit: 4}, "abc\n", wire.FileLineFacts{First: 1, Count: 1, Total: total(2), Next: 2, NextOffset: 5, CutCount: 1, Cut: []wire.CutLine{{Line: 1, Size: 4, Kept: 3}}}},
		"within a character":      {"aéé\n", Lines{First: 1, Limit: 5}, "aé\n", wire.FileLineFacts{First: 1, Count: 1, Total: total(1), CutCount: 1, Cut: []wire.CutLine{{Line: 1, Size: 5, Kept: 3}}}},
		"a line as long as kept":  {long(most) + "\r\nb", Lines{First: 1}, long(most) + "\r\nb", wire.FileLineFacts{First: 1, Count: 2, Total: total(2), CRLF: true}},
		"one byte longer":         {"a\n" + long(most+1) + "\r\nb", Lines{First: 1}, "a\n" + long(most) + "\r\nb", wire.FileLineFacts{First: 1, Count: 3, Total: total(3), CRLF: true, CutCount: 1, Cut: []wire.CutLine{{Line: 2, Offset: 2, Size: most + 1, Kept: most}}}},
		"cut within a character":  {long(most-1) + "é", Lines{First: 1}, long(most - 1), wire.FileLineFacts{First: 1, Count: 1, Total: total(1), CutCount: 1, Cut: []wire.CutLine{{Line: 1, Size: most + 1, Kept: most - 1}}}},
		"longer than a chunk":     {long(3*chunk) + "\nb", Lines{First: 2}, "b", wire.FileLineFacts{First: 2, Count: 1, Offset: 3*chunk + 1, Total: total(2)}},
		"one short of all chunks": {long(chunk-1) + "\nb", Lines{First: 2}, "b", wire.FileLineFacts{First: 2, Count: 1, Offset: chunk, Total: total(2)}},
	} {
		if c.want.Limit == 0 {
			c.want.Limit = wire.DefaultFileRead
		}
		data, facts, err := readLines(t.Context(), strings.NewReader(c.content), int64(len(c.content)), c.want)
		if err != nil || string(data) != c.data {
			t.Errorf("%s: %.100q, %v, want %.100q", name, data, err, c.data)
			continue
		}
		if diff := cmp.Diff(&c.facts, facts); diff != "" {
			t.Errorf("%s: facts (-want +got)\n%s", name, diff)
		}
	}
}

func TestReadLinesBeyondTheEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		content      string
		first, total int64
	}{{"", 2, 0}, {"a", 2, 1}, {"a\n", 2, 1}, {"a\nb", 3, 2}, {"a\nb\n", 1 << 60, 2}} {
		_, facts, err := readLines(t.Context(), strings.NewReader(c.content), int64(len(c.content)), Lines{First: c.first, Limit: 10})
		if !errors.Is(err, errBeyond) || *facts.Total != c.total {
			t.Errorf("line %d of %q: %+v, %v", c.first, c.content, facts, err)
		}
	}
}

// A read tells of so many cut lines, and counts all.
func TestReadLinesTellsOfSomeCutLines(t *testing.T) {
	t.Parallel()
	for _, n := range []int{wire.MaxCutLines - 1, wire.MaxCutLines, wire.MaxCutLines + 1} {
		content := strings.Repeat(long(wire.MaxFileLine+1)+"\n", n)
		_, facts, err := readLines(t.Context(), strings.NewReader(content), int64(len(content)), Lines{First: 1, Limit: 2 * len(content)})
		if err != nil || len(facts.Cut) != min(n, wire.MaxCutLines) || facts.CutCount != int64(n) {
			t.Errorf("%d: told of %d, counted %d, %v", n, len(facts.Cut), facts.CutCount, err)
		}
	}
}

// newlines is a file of newlines, as long as one likes.
type newlines struct{ reads int }

func (z *newlines) ReadAt(p []byte, _ int64) (int, error) {
	z.reads++
	return copy(p, onlyNewlines), nil
}

var onlyNewlines = bytes.Repeat(newline, chunk)

// The lines of a file are counted if they can be soon.
func TestReadLinesCountsSoFar(t *testing.T) {
	t.Parallel()
	for size, counted := range map[int64]bool{maxCounted: true, maxCounted + 1: true, maxCounted + 2*chunk: false, 1 << 50: false} {
		src := &newlines{}
		_, facts, err := readLines(t.Context(), src, size, Lines{First: 1, Count: 1, Limit: 10})
		if err != nil || (facts.Total != nil) != counted || counted && *facts.Total != size || facts.Next != 2 || src.reads > maxCounted/chunk+2 {
			t.Errorf("%d bytes: %+v, %v, after %d reads", size, facts, err, src.reads)
		}
	}
}

func TestReadLinesEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	src := &newlines{}
	if _, _, err := readLines(ctx, src, 1<<50, Lines{First: 1 << 49, Limit: 10}); !errors.Is(err, context.Canceled) || src.reads != 0 {
		t.Errorf("%v after %d reads", err, src.reads)
	}
}

// model reads lines of what is in memory.
func model(content []byte, want Lines) (lines [][]byte, data []byte, offset int64, cut bool) {
	for line := range bytes.Lines(content) {
		lines = append(lines, line)
	}
	for i, line := range lines {
		switch n := int64(i) + 1; {
		case n < want.First:
			offset += int64(len(line))
		case want.Count > 0 && n >= want.First+want.Count:
			return lines, data, offset, cut
		default:
			content := bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
			if !bytes.HasSuffix(line, []byte("\r\n")) {
				content = bytes.TrimSuffix(line, []byte("\n"))
			}
			end := line[len(content):]
			kept := content[:min(len(content), wire.MaxFileLine)]
			if len(data)+len(kept)+len(end) > want.Limit {
				if n > want.First {
					return lines, data, offset, cut
				}
				kept = kept[:max(0, want.Limit-len(end))]
			}
			if len(kept) < len(content) {
				kept, cut = wholeRunes(kept), true
			}
			data = append(append(data, kept...), end...)
		}
	}
	return lines, data, offset, cut
}

func FuzzReadLines(f *testing.F) {
	for _, content := range []string{"", "\n", "a\nb", "a\r\nb\r\n", "é\xff\n\r\r\n", strings.Repeat("line\n", 40000), strings.Repeat("é", chunk)} {
		f.Add([]byte(content), int64(1), int64(0), 100)
		f.Add([]byte(content), int64(2), int64(1), wire.DefaultFileRead)
	}
	f.Fuzz(func(t *testing.T, content []byte, first, count int64, limit int) {
		first, count, limit = 1+first&0xffff, count&0xffff, 1+limit&(wire.MaxFileRead-1)
		want := Lines{First: first, Count: count, Limit: limit}
		lines, data, offset, cut := model(content, want)
		got, facts, err := readLines(t.Context(), bytes.NewReader(content), int64(len(content)), want)
		if first > 1 && first > int64(len(lines)) {
			if !errors.Is(err, errBeyond) {
				t.Fatalf("%v, want that there is no such line", err)
			}
			return
		}
		if err != nil || !bytes.Equal(got, data) || facts.Offset != offset || *facts.Total != int64(len(lines)) || (facts.CutCount > 0) != cut {
			t.Fatalf("%+v: %q, %+v, %v, want %q from %d, of %d", want, got, facts, err, data, offset, len(lines))
		}
		if len(got) > limit+len("\r\n") {
			t.Fatalf("%d bytes for %d", len(got), limit)
		}
		if next := facts.First + facts.Count; facts.Next != 0 && (facts.Next != next || facts.NextOffset > int64(len(content)) || content[facts.NextOffset-1] != '\n') ||
			facts.Next == 0 && next != int64(len(lines))+1 {
			t.Fatalf("goes on at %+v", facts)
		}
	})
}

func TestEncoding(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		head    string
		more    bool
		textual bool
		want    string
	}{
		"nothing":                      {"", false, false, wire.EncodingUTF8},
		"ASCII":                        {"abc", false, true, wire.EncodingUTF8},
		"UTF-8":                        {"aé漢😀", false, true, wire.EncodingUTF8},
		"UTF-8 with a mark":            {"\xef\xbb\xbfa", false, true, wire.EncodingUTF8},
		"UTF-8 that goes on":           {"aé漢😀"[:8], true, true, wire.EncodingUTF8},
		"UTF-8 that ends early":        {"aé漢😀"[:8], false, true, wire.Encoding8Bit},
		"Latin-1":                      {"caf\xe9 cr\xe8me", false, true, wire.Encoding8Bit},
		"UTF-16, little":               {"\xff\xfea\x00", false, false, wire.EncodingUTF16LE},
		"UTF-16, big":                  {"\xfe\xff\x00a", false, false, wire.EncodingUTF16BE},
		"UTF-32":                       {"\xff\xfe\x00\x00a\x00\x00\x00", false, false, wire.EncodingBinary},
		"a NUL":                        {"abc\x00", false, true, wire.EncodingBinary},
		"valid, but of a type":         {"%PDF-1.7", false, false, wire.EncodingBinary},
		"invalid, and of no known one": {"\x01\xff", false, false, wire.EncodingBinary},
	} {
		if got := encodingOf([]byte(c.head), c.more, c.textual); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func FuzzWholeRunes(f *testing.F) {
	f.Add("aé漢😀", 5)
	f.Fuzz(func(t *testing.T, s string, n int) {
		if !utf8.ValidString(s) || len(s) == 0 {
			return
		}
		n = (n&0xffff)%len(s) + 1
		got := string(wholeRunes([]byte(s[:n])))
		if !utf8.ValidString(got) || n-len(got) >= utf8.UTFMax || n == len(s) && got != s {
			t.Errorf("%q to %d: %q", s, n, got)
		}
	})
}
