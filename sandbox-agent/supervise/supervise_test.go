package supervise

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/process"
	"github.com/berth-dev/berth/sandbox-agent/spool"
)

// TestMain lets the test binary be its own supervisor.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "supervise" {
		if err := Run(nil); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func fixture(t *testing.T) *Supervisor {
	t.Helper()
	reaper, err := process.NewReaper()
	if err != nil {
		t.Fatal(err)
	}
	s := New(reaper, nil)
	t.Cleanup(func() {
		s.Close()
		if l := s.link.Load(); l != nil {
			<-l.child.Exited()
		}
		reaper.Close()
	})
	return s
}

// run starts a script and returns what it writes.
func run(t *testing.T, s *Supervisor, script string) (*Process, *bufio.Reader) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	dir, err := os.OpenFile(t.TempDir(), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	p, err := s.Start(Program{Path: "/bin/sh", Argv: []string{"sh", "-c", script}, Env: []string{"A=b"}}, dir, []*os.File{null, w, w})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	return p, bufio.NewReader(r)
}

func ended(t *testing.T, p *Process) int {
	t.Helper()
	select {
	case <-p.Ended():
	case <-time.After(10 * time.Second):
		t.Fatal("the process does not end")
	}
	code, known := p.ExitCode()
	if !known {
		t.Error("want its exit code known")
	}
	return code
}

func line(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	s, err := r.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(s, "\n")
}

func TestProcessesAreStartedAsAsked(t *testing.T) {
	s := fixture(t)
	p, out := run(t, s, `echo "$A $PPID $$"; ps -o sid=,pgid= -p $$ >/dev/null; ls /proc/self/fd | tr '\n' ' '; cat /proc/self/oom_score_adj; exit 7`)
	if got, want := line(t, out), fmt.Sprintf("b %d %d", s.PID(), p.PID); got != want {
		t.Errorf("environment, parent, pid: want %q, got %q", want, got)
	}
	if got := line(t, out); got != "0 1 2 3 1000" {
		t.Errorf("descriptors (one is ls's own) and OOM score: got %q", got)
	}
	if code := ended(t, p); code != 7 {
		t.Errorf("want exit code 7, got %d", code)
	}
	if err := p.SignalGroup(unix.SIGTERM); !errors.Is(err, ErrEnded) {
		t.Errorf("signal to one that ended: want ErrEnded, got %v", err)
	}
}

func TestProcessesStandBackBehindTheAgent(t *testing.T) {
	s := fixture(t)
	// It is ordered so when it runs already.
	p, out := run(t, s, `i=0; while [ "$(nice)" != 19 ] && [ $i -lt 1000 ]; do i=$((i+1)); done; nice`)
	if got, want := line(t, out), fmt.Sprint(process.Nice); got != want {
		t.Errorf("nice of what a process starts: got %s, want %s", got, want)
	}
	ended(t, p)
	// 20 less what is called nice.
	mine, errMine := unix.Getpriority(unix.PRIO_PROCESS, 0)
	its, errIts := unix.Getpriority(unix.PRIO_PROCESS, s.PID())
	if errMine != nil || errIts != nil || its != mine {
		t.Errorf("the supervisor's own: got nice %d (%v), want the agent's, %d (%v)", 20-its, errIts, 20-mine, errMine)
	}
}

func TestSignalsReachTheGroup(t *testing.T) {
	s := fixture(t)
	p, out := run(t, s, `exec 2>/dev/null; trap 'wait; exit 3' USR1; sh -c 'trap "echo child; exit" USR1; echo on; while :; do sleep 0.01; done' & wait`)
	line(t, out)
	if err := p.SignalGroup(unix.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	if got := line(t, out); got != "child" {
		t.Errorf("got %q", got)
	}
	if code := ended(t, p); code != 3 {
		t.Errorf("got exit code %d", code)
	}
}

func TestProgramThatIsNotThere(t *testing.T) {
	s := fixture(t)
	dir, err := os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	_, err = s.Start(Program{Path: "/nowhere", Argv: []string{"x"}}, dir, []*os.File{dir})
	if err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("got %v", err)
	}
	if p, _ := run(t, s, "exit 1"); ended(t, p) != 1 {
		t.Error("want the next to start")
	}
}

// TestOrphansAreAdopted: a supervisor that is killed takes nothing along but
// its hold on what orphans leave.
func TestOrphansAreAdopted(t *testing.T) {
	s := fixture(t)
	p, out := run(t, s, `echo on; read a </dev/null; kill -STOP $$; exit 9`)
	line(t, out)
	before := s.PID()
	if err := unix.Kill(before, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-s.link.Load().lost
	if pid := s.PID(); pid != 0 {
		t.Errorf("want no supervisor, got %d", pid)
	}
	q, _ := run(t, s, "exit 4")
	if code := ended(t, q); code != 4 || s.PID() == before {
		t.Errorf("want a new supervisor, got exit code %d of pid %d", code, s.PID())
	}
	if err := p.SignalGroup(unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for stopped := true; stopped; { // until it is past its own STOP
		select {
		case <-p.Ended():
			stopped = false
		default:
			if err := p.SignalGroup(unix.SIGCONT); err != nil && !errors.Is(err, ErrEnded) {
				t.Fatal(err)
			}
		}
	}
	if code := ended(t, p); code != 9 || !p.Orphaned() || q.Orphaned() {
		t.Errorf("want exit code 9 of an orphan, got %d, %v", code, p.Orphaned())
	}
}

// TestSupervisorIsKilledJustNow: its end may not have been seen when the next
// process is to start.
func TestSupervisorIsKilledJustNow(t *testing.T) {
	s := fixture(t)
	for range 20 {
		p, _ := run(t, s, "exit 1")
		ended(t, p)
		if err := unix.Kill(s.PID(), unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if q, _ := run(t, s, "exit 2"); ended(t, q) != 2 {
			t.Fatal("want the next to start")
		}
	}
}

// TestLimitsOfTheSupervisor: what was done to them is undone, or the next process
// has another supervisor.
func TestLimitsOfTheSupervisor(t *testing.T) {
	s := fixture(t)
	p, _ := run(t, s, "exit 1")
	ended(t, p)
	first := s.PID()
	var was unix.Rlimit
	if err := unix.Prlimit(first, unix.RLIMIT_NOFILE, nil, &was); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prlimit(first, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 10, Max: was.Max}, nil); err != nil {
		t.Fatal(err)
	}
	if q, out := run(t, s, "ulimit -n"); line(t, out) != fmt.Sprint(was.Cur) || ended(t, q) != 0 || s.PID() != first {
		t.Error("want a soft limit restored")
	}
	if err := unix.Prlimit(first, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 9, Max: 9}, nil); err != nil {
		t.Fatal(err)
	}
	if q, out := run(t, s, "ulimit -n"); line(t, out) != fmt.Sprint(was.Cur) || ended(t, q) != 0 || s.PID() == first {
		t.Error("want the next supervisor to have the agent's limits")
	}
}

func TestStoppedSupervisorGoesOn(t *testing.T) {
	s := fixture(t)
	p, _ := run(t, s, "exit 1")
	ended(t, p)
	if err := unix.Kill(s.PID(), unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if q, _ := run(t, s, "exit 2"); ended(t, q) != 2 {
		t.Error("want the next to start")
	}
}

func TestSupervisorIsDeafToSignals(t *testing.T) {
	s := fixture(t)
	p, _ := run(t, s, "exit 1")
	ended(t, p)
	pid := s.PID()
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGPIPE, unix.SIGUSR1, unix.SIGALRM, unix.SIGSEGV} {
		if err := unix.Kill(pid, sig); err != nil {
			t.Fatal(err)
		}
	}
	if q, _ := run(t, s, "exit 2"); ended(t, q) != 2 || s.PID() != pid {
		t.Error("want the same supervisor to go on")
	}
	if _, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid)); os.Getuid() != 0 && err == nil {
		t.Error("want its descriptors closed to others")
	}
}

func TestManyAtOnce(t *testing.T) {
	s := fixture(t)
	var all []*Process
	for i := range 100 {
		p, _ := run(t, s, fmt.Sprintf("exit %d", i))
		all = append(all, p)
	}
	for i, p := range all {
		if code := ended(t, p); code != i {
			t.Errorf("process %d: exit code %d", i, code)
		}
	}
	l := s.link.Load()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.processes)+len(l.pending) != 0 {
		t.Errorf("left: %v, %v", l.processes, l.pending)
	}
}

func TestMemoryFileIsReadWhole(t *testing.T) {
	f, err := spool.Memory("program", []byte(`{"Path":"/x","Argv":["x"],"Env":null,"Terminal":false}`))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if p, err := readProgram(int(f.Fd())); err != nil || p.Path != "/x" {
		t.Errorf("got %+v, %v", p, err)
	}
	if _, err := io.ReadAll(f); err != nil {
		t.Error(err)
	}
}

func FuzzParseReply(f *testing.F) {
	for _, s := range []string{`{"kind":"ready"}`, `{"kind":"started","seq":1,"pid":7}`, `{"kind":"exited","pid":7,"code":137}`, `{"kind":"failed","seq":1,"error":"x"}`, `{"kind":"started","seq":1,"pid":1}`, `{}`, `{"kind":"ready"}{}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseReply(b)
		if err != nil {
			return
		}
		if r.Kind == started && (r.PID < 2 || r.Seq == 0) || r.Kind == exited && (r.Code < 0 || r.Code > 255) {
			t.Errorf("%q became %+v", b, r)
		}
		_, _ = parseRequest(b) // must not panic
	})
}
