package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// logged reads a log as the file that commands see and as the artifact, which
// must be the same.
func (a *agent) logged(t testing.TB, l *client.LogFile) string {
	t.Helper()
	if l == nil {
		t.Fatal("no log")
	}
	file, err := os.ReadFile(filepath.Join(a.workspace, l.Path))
	if err != nil {
		t.Fatal(err)
	}
	artifact, r, err := a.read(t, l.ID, client.Span{})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(file, artifact) || int64(len(file)) != l.Size || r.MIMEType != "text/plain" {
		t.Errorf("log %+v: file of %d bytes, artifact of %d, %s", l, len(file), len(artifact), r.MIMEType)
	}
	return string(file)
}

// A log begins with the first byte that the result can't hold: at the limit,
// one below and one above, in a command that is over at once, one that takes its
// time and one without a bash.
func TestLogBeginsBeyondTheInlineLimit(t *testing.T) {
	t.Parallel()
	const limit = 1000
	for name, o := range map[string]agentOptions{"bash": {}, "sh": {environ: plainSh}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := startAgent(t, o)
			for _, pause := range []string{"", "; sleep 0.01"} {
				for _, n := range []int{limit - 1, limit, limit + 1} {
					r := a.exec(t, client.ExecRequest{Command: fmt.Sprintf("head -c %d /dev/zero%s", n, pause), MaxOutputBytes: limit})
					if n <= limit {
						if r.Log != nil || r.Truncated || r.Stdout != strings.Repeat("\x00", n) {
							t.Errorf("%d bytes%s: want all of it inline, got %d and log %+v", n, pause, len(r.Stdout), r.Log)
						}
						if _, err := os.Lstat(filepath.Join(a.workspace, ".berth")); err == nil && pause == "" {
							t.Errorf("%d bytes%s: a directory was made", n, pause)
						}
						continue
					}
					if !r.Truncated || r.Log == nil || r.Log.Stderr != nil || a.logged(t, r.Log.Stdout) != strings.Repeat("\x00", n) {
						t.Errorf("%d bytes%s: %+v", n, pause, r)
					}
					if !strings.Contains(r.Stdout, r.Log.Stdout.Path+" ...]") {
						t.Errorf("%d bytes%s: the result doesn't say where all of it is", n, pause)
					}
					if err := os.RemoveAll(filepath.Join(a.workspace, ".berth")); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

// Bytes are what was written: in the log as they were, in the result with each
// that is not UTF-8 replaced.
func TestLogIsExact(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	const ends = `\0\r\n\377\376\303(\r\0`
	r := a.exec(t, client.ExecRequest{
		Command:        `printf '` + ends + `'; seq 1000; printf '` + ends + `' >&2; seq 1000 >&2; printf '` + ends + `'; printf '` + ends + `\n\n' >&2`,
		MaxOutputBytes: 100,
	})
	var seq strings.Builder
	for i := range 1000 {
		fmt.Fprintln(&seq, i+1)
	}
	const raw, text = "\x00\r\n\xff\xfe\xc3(\r\x00", "\x00\r\n\uFFFD\uFFFD\uFFFD(\r\x00"
	if diff := cmp.Diff(raw+seq.String()+raw, a.logged(t, r.Log.Stdout)); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(raw+seq.String()+raw+"\n\n", a.logged(t, r.Log.Stderr)); diff != "" {
		t.Errorf("stderr (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(r.Stdout, text) || !strings.HasSuffix(r.Stdout, text) || !strings.HasSuffix(r.Stderr, text+"\n\n") {
		t.Errorf("inline: %q and %q", r.Stdout, r.Stderr)
	}
	if got := a.output(t, "grep -c 7 "+r.Log.Stdout.Path+"; rm "+r.Log.Stdout.Path); got != "271\n" {
		t.Errorf("a command finds %q in the log", got)
	}
	if data, _, err := a.read(t, r.Log.Stdout.ID, client.Span{Offset: 9, Length: 4}); err != nil || string(data) != "1\n2\n" {
		t.Errorf("a part of a log that was unlinked: %q, %v", data, err)
	}
}

func TestLogLimitIsTheSessions(t *testing.T) {
	t.Parallel()
	const limit = 100_000
	a := startAgent(t, agentOptions{limits: client.Limits{LogBytes: limit}})
	for _, n := range []int{limit - 1, limit, limit + 1} {
		r := a.exec(t, client.ExecRequest{Command: fmt.Sprintf("head -c %d /dev/zero", n), MaxOutputBytes: 10})
		l := r.Log.Stdout
		if a.logged(t, l) != strings.Repeat("\x00", min(n, limit)) || l.Truncated != (n > limit) || l.Truncated != strings.Contains(r.Notice, "reached their limit") || r.ExitCode != 0 {
			t.Errorf("%d bytes: log %+v, notice %q", n, l, r.Notice)
		}
	}
	if got := a.output(t, "ls .berth/logs | wc -l"); got != "1\n" {
		t.Errorf("want the older logs swept, got %s", got)
	}
	r := a.exec(t, client.ExecRequest{Command: "seq 1000", MaxOutputBytes: 10, NoLog: true})
	if r.Log != nil || !r.Truncated || !strings.Contains(r.Stdout, "bytes omitted ...]") {
		t.Errorf("want no log, got %+v", r)
	}
}

// A session may put anything in the way of its logs: commands run, and results
// say that there is none.
func TestNoLogIsNoFailure(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	for _, obstacle := range []string{"touch .berth", "mkfifo .berth", "ln -s /tmp .berth", "mkdir .berth; ln -s /tmp .berth/logs", "mkdir .berth; mkfifo .berth/logs"} {
		a.output(t, "rm -rf .berth; "+obstacle)
		r := a.exec(t, client.ExecRequest{Command: "seq 1000; echo done", MaxOutputBytes: 10})
		if r.ExitCode != 0 || r.Log != nil || !strings.Contains(r.Notice, "No log") || !strings.HasSuffix(r.Stdout, "done\n") {
			t.Errorf("%s: %+v", obstacle, r)
		}
	}
}

func TestLogsOfAnAgentBeforeAreSwept(t *testing.T) {
	t.Parallel()
	workspace := t.TempDir()
	old := filepath.Join(workspace, ".berth", "logs", "0123456789abcdef.stdout")
	if err := errors.Join(os.MkdirAll(filepath.Dir(old), 0o700), os.WriteFile(old, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	a := startAgent(t, agentOptions{args: []string{"--workspace=" + workspace}})
	a.workspace = workspace
	r := a.exec(t, client.ExecRequest{Command: "seq 1000", MaxOutputBytes: 10}) // waits for it
	if got := a.output(t, "ls .berth/logs"); got != filepath.Base(r.Log.Stdout.Path)+"\n" {
		t.Errorf("logs: %q", got)
	}
}
