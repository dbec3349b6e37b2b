package output

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/sandbox-agent/artifact"
	"github.com/berth-dev/berth/sandbox-agent/execlog"
)

// logs makes the logs of one command.
type logs struct {
	*execlog.Command
	workspace string
}

func newLogs(t testing.TB, limit int64) logs {
	t.Helper()
	workspace := t.TempDir()
	artifacts, err := artifact.NewStore(workspace, nil, artifact.SystemClock{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := execlog.New(workspace, artifacts, artifact.SystemClock{})
	if err != nil {
		t.Fatal(err)
	}
	l := logs{store.Command(limit), workspace}
	t.Cleanup(func() {
		l.Finish()
		if err := artifacts.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// recorded is what a recorder keeps of data.
func recorded(limit int, data []byte, logs logs, stream string) *Stream {
	r := NewRecorder(limit, func() *execlog.Log { return logs.Open(stream) })
	for len(data) > 0 {
		n := min(len(data), 5)
		_, _ = r.Write(data[:n]) // never fails
		data = data[n:]
	}
	s := r.Stream()
	return &s
}

// checkLog holds a log against what was written.
func checkLog(t testing.TB, logs logs, s *Stream, all []byte) {
	t.Helper()
	if s.Log == nil || s.Log.Path() == "" {
		return
	}
	got, err := os.ReadFile(filepath.Join(logs.workspace, ".berth", "logs", filepath.Base(s.Log.Path())))
	if err != nil || !bytes.HasPrefix(all, got) || s.Log.Truncated() != (len(got) < len(all)) || s.Log.Size() != int64(len(got)) {
		t.Errorf("log of %d bytes, truncated %v: %d bytes, %v", s.Log.Size(), s.Log.Truncated(), len(got), err)
	}
}

// A stream has a log from the first byte on that memory does not hold: at the
// limit, one below and one above, written at once or in parts.
func TestLogBeginsWhenMemoryIsFull(t *testing.T) {
	for _, limit := range []int{1, 2, 9, 10, 11, 64} {
		for _, n := range []int{limit - 1, limit, limit + 1, 3 * limit} {
			data := bytes.Repeat([]byte("0123456789\x00\xff"), n)[:n]
			for _, whole := range []bool{true, false} {
				logs := newLogs(t, 1<<20)
				r := NewRecorder(limit, func() *execlog.Log { return logs.Open(execlog.Stdout) })
				if whole {
					_, _ = r.Write(data) // never fails
				} else {
					for i := range data {
						_, _ = r.Write(data[i : i+1])
					}
				}
				s := r.Stream()
				if (s.Log != nil) != (n > limit) {
					t.Errorf("limit %d, %d bytes: log %v", limit, n, s.Log)
				}
				checkLog(t, logs, &s, data)
				if s.Total != int64(n) || n > limit && s.Log.Size() != int64(n) {
					t.Errorf("limit %d, %d bytes: total %d, log %+v", limit, n, s.Total, s.Log)
				}
			}
		}
	}
}

// A stream that memory holds, and an answer does not, has a log as well.
func TestStreamThatIsCutHasALog(t *testing.T) {
	logs := newLogs(t, 1<<20)
	data := bytes.Repeat([]byte{1}, 1000)
	s := recorded(1000, data, logs, execlog.Stdout)
	if s.Log != nil {
		t.Fatal("want no log yet")
	}
	out, _ := Encode(s, &Stream{}, 1000)
	if out.Omitted == 0 || s.Log == nil || s.Log.Size() != 1000 {
		t.Fatalf("%d bytes omitted, log %+v", out.Omitted, s.Log)
	}
	checkLog(t, logs, s, data)
	if want := "bytes omitted; all of it is in " + s.Log.Path(); !strings.Contains(out.String, want) {
		t.Errorf("want %q in %q", want, out.String)
	}
}

func TestNoteSaysWhatTheLogLacks(t *testing.T) {
	s := recorded(10, bytes.Repeat([]byte("a"), 1000), newLogs(t, 100), execlog.Stderr)
	_, err := Encode(&Stream{}, s, 1000)
	if want := "[... 990 bytes omitted; the first 100 bytes are in " + s.Log.Path() + " ...]"; !strings.Contains(err.String, want) {
		t.Errorf("want %q in %q", want, err.String)
	}
	s = recorded(10, bytes.Repeat([]byte("a"), 1000), newLogs(t, 0), execlog.Stderr)
	_, err = Encode(&Stream{}, s, 1000)
	if want := "[... 990 bytes omitted ...]"; !strings.Contains(err.String, want) {
		t.Errorf("without a log: want %q in %q", want, err.String)
	}
}
