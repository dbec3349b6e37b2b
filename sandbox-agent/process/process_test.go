package process

import (
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseStat(t *testing.T) {
	const rest = " 7 1 1 0 -1 4194560 100 0 0 0 0 0 0 0 20 0 1 0 4242 1000 50"
	for text, want := range map[string]Stat{
		"12 (bash) S" + rest:             {PID: 12, Parent: 7, Group: 1, State: 'S', Start: 4242},
		"12 (a) R 1 (b)) Z" + rest:       {PID: 12, Parent: 7, Group: 1, State: 'Z', Start: 4242},
		"12 (new\nline) T" + rest + "\n": {PID: 12, Parent: 7, Group: 1, State: 'T', Start: 4242},
	} {
		if got, err := parseStat([]byte(text)); err != nil || got != want {
			t.Errorf("%q: want %+v, got %+v, %v", text, want, got, err)
		}
	}
	for _, bad := range []string{"", "12", "12 (x", "12 (x)", "12 (x) S 7", "x (y) S" + rest} {
		if _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("want %q refused", bad)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("12 (bash) S 7 1 1 0 -1 4194560 100 0 0 0 0 0 0 0 20 0 1 0 4242 1000 50"))
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = parseStat(b) }) // must not panic
}

func TestVictims(t *testing.T) {
	const before, start, after = 100, 200, 300
	scope := Scope{Agent: 1, Shell: 10, Spare: 11, Mark: 11, Start: start}
	for name, c := range map[string]struct {
		all  []Stat
		want []int
	}{
		"shell and child": {[]Stat{{PID: 10, Parent: 1, Start: before}, {PID: 20, Parent: 10, Start: after}}, []int{10, 20}},
		"spare is kept":   {[]Stat{{PID: 11, Parent: 10, Start: before}, {PID: 10, Parent: 1, Start: before}}, []int{10}},
		"orphan of now":   {[]Stat{{PID: 20, Parent: 1, Start: after}, {PID: 21, Parent: 20, Start: after}}, []int{20, 21}},
		"older job with a new child": {[]Stat{
			{PID: 10, Parent: 1, Start: before}, {PID: 9, Parent: 10, Start: before}, {PID: 20, Parent: 9, Start: after}}, []int{10}},
		"older orphan with a new child": {[]Stat{{PID: 9, Parent: 1, Start: before}, {PID: 20, Parent: 9, Start: after}}, nil},
		"entered from outside":          {[]Stat{{PID: 30, Parent: 0, Start: after}, {PID: 31, Parent: 30, Start: after}}, nil},
		"same tick, older by pid":       {[]Stat{{PID: 9, Parent: 1, Start: start}, {PID: 12, Parent: 1, Start: start}}, []int{12}},
		"same tick, pids wrapped":       {[]Stat{{PID: 4_000_000, Parent: 1, Start: start}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []int
			for _, p := range scope.Victims(c.all) {
				got = append(got, p.PID)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("victims (-want +got):\n%s", diff)
			}
		})
	}
}

func TestVictimsThatMakeRoom(t *testing.T) {
	const before, start, after = 100, 200, 300
	all := []Stat{
		{PID: 5, Parent: 1, Start: before}, {PID: 50, Parent: 5, Start: after}, // the supervisor and a process of its
		{PID: 10, Parent: 1, Start: before}, {PID: 11, Parent: 10, Start: before}, // the shell and its spare
		{PID: 12, Parent: 10, Start: before}, {PID: 13, Parent: 12, Start: after}, // an older job, with a new child
		{PID: 20, Parent: 10, Start: after}, {PID: 21, Parent: 20, Start: after}, // the command's
		{PID: 30, Parent: 1, Start: before}, {PID: 31, Parent: 1, Start: after}, // orphans
		{PID: 40, Parent: 0, Start: after}, // entered from outside
	}
	base := Scope{Agent: 1, Shell: 10, Spare: 11, Keep: 5}
	for name, c := range map[string]struct {
		change func(*Scope)
		want   []int
	}{
		"of the last command": {func(s *Scope) { s.KeepShell, s.Start, s.Mark = true, start, 11 }, []int{20, 21, 31}},
		"of all commands":     {func(s *Scope) { s.KeepShell = true }, []int{12, 13, 20, 21, 30, 31}},
		"for a command":       {func(s *Scope) { s.Others, s.Start, s.Mark = true, start, 11 }, []int{12, 13, 30, 31}},
		"without a shell":     {func(s *Scope) { s.Shell, s.Spare = 0, 0 }, []int{10, 11, 12, 13, 20, 21, 30, 31}},
	} {
		t.Run(name, func(t *testing.T) {
			scope := base
			c.change(&scope)
			var got []int
			for _, p := range scope.Victims(all) {
				got = append(got, p.PID)
			}
			slices.Sort(got)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("victims (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHandle(t *testing.T) {
	self, err := Open(os.Getpid())
	if err != nil || !self.Alive() {
		t.Fatalf("want this process alive, got %+v, %v", self, err)
	}
	if err := self.Signal(0); err != nil {
		t.Error(err)
	}
	other := Handle{PID: self.PID, Start: self.Start + 1} // the pid's owner before
	if other.Alive() {
		t.Error("want a pid that was used again to be another process")
	}
	if err := other.Signal(9); err != nil {
		t.Errorf("want no signal and no error, got %v", err)
	}
}
