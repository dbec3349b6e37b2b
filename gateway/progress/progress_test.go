package progress

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// told is one notification and when it was sent.
type told struct {
	At   time.Duration
	Seen int64
	Text string
}

// listener is a caller who takes so long to read each notification.
type listener struct {
	start time.Time
	takes time.Duration
	heard []told
	fails error
}

func (l *listener) send(seen int64, text string) error {
	l.heard = append(l.heard, told{time.Since(l.start), seen, text})
	<-time.After(l.takes)
	return l.fails
}

// held is how much memory output that has not been told takes.
func held(r *Reporter) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return cap(r.pending.head) + cap(r.pending.tail)
}

// The first output is told at once, what follows in portions, none before its
// time, and after a silence at once again.
func TestOutputIsToldAtOnceAndThenInPortions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &listener{start: time.Now()}
		r := Start(l.send)
		write := func(text string, pause time.Duration) {
			r.Write(Stdout, []byte(text))
			synctest.Wait()
			<-time.After(pause)
		}
		write("a", 30*time.Millisecond)
		write("b", 30*time.Millisecond)
		write("c", 139*time.Millisecond) // until 199 ms
		write("d", 301*time.Millisecond)
		write("e", time.Millisecond)
		write("f", 0) // the end is in the result
		r.Stop()
		want := []told{
			{0, 1, "a"},
			{100 * time.Millisecond, 3, "bc"},
			{200 * time.Millisecond, 4, "d"},
			{500 * time.Millisecond, 5, "e"},
		}
		if diff := cmp.Diff(want, l.heard); diff != "" {
			t.Errorf("notifications (-want +got):\n%s", diff)
		}
	})
}

// A caller that reads slowly delays nobody: output is taken meanwhile, and what
// is told next is both ends of it.
func TestSlowCallerDelaysNothingAndCostsNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &listener{start: time.Now(), takes: time.Hour}
		r := Start(l.send)
		r.Write(Stdout, []byte("first"))
		synctest.Wait()
		const pieces = 1000
		piece := bytes.Repeat([]byte("0123456789abcdef"), 64<<10/16)
		for range pieces {
			r.Write(Stdout, piece)
		}
		if took := time.Since(l.start); took != 0 {
			t.Errorf("the writer was held for %s", took)
		}
		if held := held(r); held > 2*MaxMessage {
			t.Errorf("%d bytes are held", held)
		}
		<-time.After(time.Hour)
		synctest.Wait()
		r.Stop()
		if len(l.heard) != 2 || l.heard[1].Seen != 5+pieces*int64(len(piece)) {
			t.Fatalf("%d notifications, want 2, the second after all output: %+v", len(l.heard), l.heard)
		}
		text := l.heard[1].Text
		kept := strings.Count(text, "0123456789abcdef") * 16
		gap := fmt.Sprintf("\n[... %d bytes omitted ...]\n", pieces*len(piece)-kept)
		if len(text) > MaxMessage || !strings.Contains(text, gap) || kept < MaxMessage-2*gapRoom {
			t.Errorf("%d bytes with %d of the output, without %q: %.60q", len(text), kept, gap, text)
		}
	})
}

// Stop waits for the notification under way and lets none follow.
func TestStopWaitsForTheNotificationUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &listener{start: time.Now(), takes: time.Minute}
		r := Start(l.send)
		r.Write(Stdout, []byte("a"))
		synctest.Wait()
		r.Write(Stdout, []byte("b"))
		r.Stop()
		r.Write(Stdout, []byte("c")) // too late, and harmless
		if took := time.Since(l.start); took != time.Minute || len(l.heard) != 1 {
			t.Errorf("stopped after %s and %d notifications, want a minute and one", took, len(l.heard))
		}
	})
}

// A caller that has gone is told nothing more, and the command may write on.
func TestCallerGoneIsToldNothingMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &listener{start: time.Now(), fails: errors.New("gone")}
		r := Start(l.send)
		for range 100 {
			r.Write(Stderr, []byte("x"))
			<-time.After(Interval)
		}
		r.Stop()
		if len(l.heard) != 1 || held(r) != 0 {
			t.Errorf("%d notifications, %d bytes held; want one and nothing", len(l.heard), held(r))
		}
	})
}

// A command that writes nothing is told nothing.
func TestSilenceIsNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &listener{start: time.Now()}
		r := Start(l.send)
		r.Write(Stdout, nil)
		<-time.After(time.Hour)
		r.Stop()
		if len(l.heard) != 0 {
			t.Errorf("told %+v", l.heard)
		}
	})
}

// Each stream's characters stay whole, however they come and whatever comes in
// between; what is no UTF-8 is U+FFFD byte by byte, and control bytes stay.
func TestCharactersStayWhole(t *testing.T) {
	type piece struct {
		stream int
		data   string
	}
	tests := map[string]struct {
		pieces []piece
		want   string
	}{
		"split":                     {[]piece{{Stdout, "gr\xc3"}, {Stdout, "\xbcn"}}, "grün"},
		"byte by byte":              {[]piece{{Stdout, "\xf0"}, {Stdout, "\x9f"}, {Stdout, "\x98"}, {Stdout, "\x80"}}, "😀"},
		"other stream in between":   {[]piece{{Stdout, "\xe6\xbc"}, {Stderr, "err"}, {Stdout, "\xa2out"}}, "err漢out"},
		"both split":                {[]piece{{Stdout, "\xe6"}, {Stderr, "\xc3"}, {Stdout, "\xbc\xa2"}, {Stderr, "\xa4"}}, "漢ä"},
		"long after split":          {[]piece{{Stdout, "\xe6\xbc"}, {Stdout, "\xa2 and more"}}, "漢 and more"},
		"never completed":           {[]piece{{Stdout, "\xe6\xbc"}, {Stdout, "x"}}, "\ufffd\ufffdx"},
		"cut at the end":            {[]piece{{Stdout, "abc\xe6\xbc"}}, "abc"},
		"not UTF-8":                 {[]piece{{Stdout, "\xff\xfe\x80a\xc0"}, {Stdout, "b"}}, "\ufffd\ufffd\ufffda\ufffdb"},
		"surrogate":                 {[]piece{{Stdout, "\xed\xa0\x80."}}, "\ufffd\ufffd\ufffd."},
		"control bytes":             {[]piece{{Stdout, "\x00\x1b[31m\r\n\x7f"}}, "\x00\x1b[31m\r\n\x7f"},
		"byte order mark, replaced": {[]piece{{Stdout, "\ufeff\ufffd"}}, "\ufeff\ufffd"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &listener{start: time.Now()}
				r := Start(l.send)
				total := int64(0)
				for _, p := range tc.pieces {
					r.Write(p.stream, []byte(p.data))
					total += int64(len(p.data))
				}
				synctest.Wait()
				r.Stop()
				if diff := cmp.Diff([]told{{0, total, tc.want}}, l.heard); diff != "" {
					t.Errorf("notifications (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// MaxMessage holds at it, one below and one above, also when U+FFFD makes text
// three times as long as what it stands for.
func TestMessageIsBounded(t *testing.T) {
	t.Parallel()
	for _, size := range []int{MaxMessage - 1, MaxMessage, MaxMessage + 1, 3 * MaxMessage} {
		for _, unit := range []string{"x", "ü", "漢", "😀", "\xff", "a\xff", "\x80"} {
			data := []byte(strings.Repeat(unit, size/len(unit)+1)[:size])
			data = data[:size-unfinished(data)]
			var p pending
			for rest := data; len(rest) > 0; {
				n := min(len(rest), 1000)
				p.add(rest[:n])
				rest = rest[n:]
			}
			checkText(t, data, p.text())
		}
	}
}

// checkText checks that text is data, or both its ends and a true gap.
func checkText(t *testing.T, data []byte, text string) {
	t.Helper()
	if len(text) > MaxMessage || !utf8.ValidString(text) {
		t.Errorf("%d bytes became %d, valid %v", len(data), len(text), utf8.ValidString(text))
	}
	if whole := valid(data); len(whole) <= MaxMessage {
		if text != whole {
			t.Errorf("%d bytes that fit became %.80q", len(data), text)
		}
		return
	}
	head, rest, _ := strings.Cut(text, "\n[... ")
	gap, tail, _ := strings.Cut(rest, " bytes omitted ...]\n")
	var omitted int
	if _, err := fmt.Sscan(gap, &omitted); err != nil {
		t.Fatalf("no gap in %.80q", text)
	}
	// Each U+FFFD stands for a byte: count what both ends stand for.
	stands := func(s string) int { return len(s) - 2*strings.Count(s, "\ufffd") }
	if !bytes.Contains(data, []byte("\ufffd")) && stands(head)+omitted+stands(tail) != len(data) {
		t.Errorf("%d + %d + %d bytes are not %d", stands(head), omitted, stands(tail), len(data))
	}
	if !strings.HasPrefix(valid(data), head) || !strings.HasSuffix(valid(data), tail) {
		t.Errorf("%.40q ... %.40q are not the ends of %.40q", head, tail, data)
	}
}

func FuzzPending(f *testing.F) {
	f.Add([]byte("plain"), 1, 3)
	f.Add([]byte("\xe6\xbc\xa2\xff\x80"), 5000, 7)
	f.Add([]byte("a\xf0\x9f\x98\x80"), 1639, 4096)
	f.Fuzz(func(t *testing.T, unit []byte, times, step int) {
		times, step = min(max(times, 0), 20000/(len(unit)+1)), min(max(step, 1), 10000)
		data := bytes.Repeat(unit, times)
		data = data[:len(data)-unfinished(data)]
		if bytes.Contains(data, []byte("[...")) {
			return
		}
		var p pending
		for rest := data; len(rest) > 0; {
			n := min(len(rest), step)
			p.add(rest[:n])
			rest = rest[n:]
		}
		checkText(t, data, p.text())
	})
}
