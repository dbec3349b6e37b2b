package mcpserver

import (
	"testing"
	"unicode/utf8"

	"github.com/berth-dev/berth/gateway/artifact"
)

func TestWholeCharacters(t *testing.T) {
	t.Parallel()
	const all = "aüb\U0001F600c" // a at 0, ü 1-2, b 3, the face 4-7, c 8
	for _, tc := range []struct {
		offset, length int
		want           string
		from           int
	}{
		{0, 9, all, 0}, {0, 100, all, 0}, {0, 1, "a", 0}, {0, 2, "a", 0}, {0, 3, "aü", 0},
		{1, 1, "ü", 1}, {1, 2, "ü", 1}, {2, 1, "b", 3}, {2, 2, "b", 3}, {3, 4, "b", 3}, {3, 5, "b\U0001F600", 3},
		{4, 1, "\U0001F600", 4}, {4, 4, "\U0001F600", 4}, {5, 1, "c", 8}, {7, 1, "c", 8}, {6, 3, "c", 8}, {8, 1, "c", 8},
	} {
		part := around(artifact.Part{Offset: int64(tc.offset), Length: int64(tc.length)})
		data := []byte(all)[part.Offset:min(part.Offset+part.Length, int64(len(all)))]
		begin, end, ok := wholeCharacters(data, tc.offset-int(part.Offset), tc.length)
		if !ok || string(data[begin:end]) != tc.want || int(part.Offset)+begin != tc.from {
			t.Errorf("%d bytes from %d: %q from %d, %v; want %q from %d", tc.length, tc.offset, data[begin:end], int(part.Offset)+begin, ok, tc.want, tc.from)
		}
	}
	for _, bad := range []string{"\xbc", "\x80\x80\x80\x80\x80", "a\xff", "gr\xfc\xdf"} {
		if _, _, ok := wholeCharacters([]byte(bad), 0, len(bad)); ok {
			t.Errorf("%q is text", bad)
		}
	}
}

// Part by part, whatever their length, a text comes whole and exact.
func FuzzWholeCharacters(f *testing.F) {
	f.Add("aüb\U0001F600c", 1)
	f.Add("\u2028\u00e9", 3)
	f.Fuzz(func(t *testing.T, all string, length int) {
		if !utf8.ValidString(all) || length < 1 || length > 1<<20 {
			return
		}
		got := ""
		for offset := 0; offset < len(all); {
			part := around(artifact.Part{Offset: int64(offset), Length: int64(length)})
			data := []byte(all)[part.Offset:min(part.Offset+part.Length, int64(len(all)))]
			begin, end, ok := wholeCharacters(data, offset-int(part.Offset), length)
			if !ok || int(part.Offset)+begin != offset || end <= begin {
				t.Fatalf("at %d: from %d, %d bytes, %v", offset, int(part.Offset)+begin, end-begin, ok)
			}
			got += string(data[begin:end])
			offset += end - begin
		}
		if got != all {
			t.Errorf("got %q, want %q", got, all)
		}
	})
}
