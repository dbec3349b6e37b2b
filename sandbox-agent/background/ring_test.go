package background

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/spool"
)

func newRing(t testing.TB, size int64) *ring {
	t.Helper()
	f, err := spool.Create([]string{t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	r := &ring{file: f, size: size}
	t.Cleanup(r.close)
	return r
}

// TestRingKeepsTheNewest: at the limit, one below and one above, and whatever
// the writes are.
func TestRingKeepsTheNewest(t *testing.T) {
	const size = 64
	random := rand.New(rand.NewPCG(1, 2))
	for _, total := range []int{0, 1, size - 1, size, size + 1, 2*size - 1, 2 * size, 2*size + 1, 1000} {
		for round := range 20 {
			r := newRing(t, size)
			var all []byte
			for len(all) < total {
				n := min(total-len(all), 1+random.IntN(3*size))
				piece := make([]byte, n)
				for i := range piece {
					piece[i] = byte(random.Uint32())
				}
				all = append(all, piece...)
				r.write(piece)
			}
			if r.end != int64(total) || r.start() != int64(max(0, total-size)) || r.dropped != 0 {
				t.Fatalf("%d bytes: from %d to %d, %d dropped", total, r.start(), r.end, r.dropped)
			}
			for from := r.start(); from < r.end; from += 1 + int64(round) {
				got, err := r.read(from, int(r.end-from))
				if err != nil || !bytes.Equal(got, all[from:]) {
					t.Fatalf("%d bytes from %d: %v", total, from, err)
				}
			}
		}
	}
}

func TestFullDiskDropsOutput(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]*os.File{"full": full, "no file": nil} {
		r := &ring{file: f, size: 10}
		r.write(make([]byte, 25))
		if r.end != 0 || r.dropped != 25 {
			t.Errorf("%s: end %d, dropped %d", name, r.end, r.dropped)
		}
		r.close()
	}
}

func TestBorder(t *testing.T) {
	for _, c := range []struct {
		b     string
		limit int
		more  bool
		want  int
	}{
		{"abc", 2, true, 2}, {"abc", 3, true, 3}, {"abc", 4, true, 3},
		{"a€", 1, true, 1}, {"a€", 2, true, 1}, {"a€", 3, true, 1}, {"a€", 4, true, 4},
		{"€€", 1, true, 3}, {"€€", 2, true, 3}, {"€€", 3, true, 3}, {"€€", 4, true, 3}, {"€€", 5, true, 3}, {"€€", 6, true, 6},
		{"a\xe2\x82", 4, true, 1}, {"a\xe2\x82", 4, false, 3}, {"a\xe2\x82", 2, true, 1}, {"a\xe2\x82", 2, false, 2},
		{"\xe2\x82", 1, true, 0}, {"\xe2\x82", 1, false, 1}, {"\xf0\x9f\x92\xa9x", 1, true, 4}, {"\xf0\x9f\x92", 9, true, 0},
		{"\x82\x82\x82\x82", 2, true, 2}, {"\x82", 4, true, 1}, {"a\xffb", 2, true, 2}, {"\xe2a", 1, true, 1}, {"\xe2\xe2\xe2", 2, false, 2},
		{"", 1, true, 0},
	} {
		if got := border([]byte(c.b), c.limit, c.more); got != c.want {
			t.Errorf("%q, %d, %v: want %d, got %d", c.b, c.limit, c.more, c.want, got)
		}
	}
}

// FuzzBorder: who reads piece by piece gets the text that one gets who reads all.
func FuzzBorder(f *testing.F) {
	f.Add([]byte("a€\xff\xe2\x82b\xf0\x9f\x92\xa9"), 3)
	f.Fuzz(func(t *testing.T, b []byte, limit int) {
		limit = 1 + int(uint(limit)%16)
		var all strings.Builder
		for i := 0; i < len(b); {
			window := b[i:min(len(b), i+limit+2*(utf8.UTFMax-1))]
			n := border(window, limit, i+len(window) < len(b))
			if n <= 0 || n > limit+utf8.UTFMax-1 {
				t.Fatalf("%q at %d, limit %d: %d", b, i, limit, n)
			}
			for _, r := range string(window[:n]) {
				all.WriteRune(r)
			}
			i += n
		}
		var want strings.Builder
		for _, r := range string(b) {
			want.WriteRune(r)
		}
		if all.String() != want.String() {
			t.Errorf("%q by %d: want %q, got %q", b, limit, want.String(), all.String())
		}
	})
}

func FuzzParseSignal(f *testing.F) {
	for _, s := range []string{"TERM", "SIGTERM", "15", "0", "65", "09", "SIGSIGTERM", "RTMIN"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, ok := ParseSignal(s)
		if ok && (n < 1 || n > lastSignal) {
			t.Errorf("%q became %d", s, n)
		}
		if name := strings.TrimPrefix(s, "SIG"); ok && s != fmt.Sprint(int(n)) && unix.SignalNum("SIG"+name) != n {
			t.Errorf("%q became %d", s, n)
		}
	})
}
