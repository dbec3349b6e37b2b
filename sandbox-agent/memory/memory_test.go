package memory

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/test/tree"
)

const (
	noKillsV1 = "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n"
	noKillsV2 = "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n"
)

// fake returns a watch of a cgroup whose files are the test's.
func fake(t testing.TB, v2 bool, files map[string]string) (*Watch, string) {
	t.Helper()
	dir := t.TempDir()
	own, mount := "4:memory:/\n", "35 31 0:32 / "+dir+" rw - cgroup cgroup rw,memory\n"
	if v2 {
		own, mount = "0::/\n", "35 31 0:32 / "+dir+" rw - cgroup2 cgroup2 rw\n"
	}
	tree.Write(t, dir, files)
	tree.Write(t, dir, map[string]string{"proc/self/cgroup": own, "proc/self/mountinfo": mount})
	w, err := open(filepath.Join(dir, "proc"))
	if err != nil {
		t.Fatal(err)
	}
	return w, dir
}

func TestKillsAreCounted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		v2           bool
		file, before string
		after        string
	}{
		"v1": {false, "memory.oom_control", noKillsV1, "oom_kill_disable 0\nunder_oom 0\noom_kill 12\n"},
		"v2": {true, "memory.events", noKillsV2, "low 0\nhigh 0\nmax 99\noom 3\noom_kill 12\noom_group_kill 1\n"},
	} {
		w, dir := fake(t, c.v2, map[string]string{c.file: c.before})
		if got := w.Kills(); got != 0 {
			t.Errorf("%s: %d kills before any", name, got)
		}
		tree.Write(t, dir, map[string]string{c.file: c.after})
		if got := w.Kills(); got != 12 {
			t.Errorf("%s: want 12 kills, got %d", name, got)
		}
	}
	if got := (*Watch)(nil).Kills(); got != 0 {
		t.Errorf("no watch: %d kills", got)
	}
}

func TestFileThatDoesNotCountKillsIsSaid(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tree.Write(t, dir, map[string]string{
		"proc/self/cgroup": "4:memory:/\n", "proc/self/mountinfo": "35 31 0:32 / " + dir + " rw - cgroup cgroup rw,memory\n",
		"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\n", // before Linux 4.13
	})
	if _, err := open(filepath.Join(dir, "proc")); err == nil || !strings.Contains(err.Error(), "does not count kills") {
		t.Errorf("got %v", err)
	}
}

func TestNoticeSaysTheLimitInWords(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"67108864\n":            "OOMKilled: a process was killed because the memory limit of 64 MiB was reached.",
		"2147483648\n":          "OOMKilled: a process was killed because the memory limit of 2 GiB was reached.",
		"1610612736\n":          "OOMKilled: a process was killed because the memory limit of 1.5 GiB was reached.",
		"1023\n":                "OOMKilled: a process was killed because the memory limit of 1023 bytes was reached.",
		"9223372036854771712\n": "OOMKilled: a process was killed because memory ran out.", // cgroup v1's none
		"max\n":                 "OOMKilled: a process was killed because memory ran out.",
	} {
		w, _ := fake(t, true, map[string]string{"memory.events": noKillsV2, "memory.max": content})
		if got := w.Notice(1); got != want {
			t.Errorf("%s: want %q, got %q", strings.TrimSpace(content), want, got)
		}
	}
	w, _ := fake(t, false, map[string]string{"memory.oom_control": noKillsV1, "memory.limit_in_bytes": "67108864\n"})
	if got, want := w.Notice(3), "OOMKilled: 3 processes were killed because the memory limit of 64 MiB was reached."; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
}

// pressure is a v2 container of 100 MB.
func pressure(anon, shmem int) map[string]string {
	return map[string]string{
		"memory.events": noKillsV2, "memory.oom.group": "1\n", "memory.max": "100000000\n",
		"memory.stat":         fmt.Sprintf("anon %d\nfile 90000000\nkernel_stack 1000\nshmem %d\n", anon, shmem),
		"memory.swap.current": "0\n", "memory.swap.max": "0\n",
	}
}

func TestGuardKillsWhenHardlyAnythingCanBeReclaimed(t *testing.T) {
	t.Parallel()
	w, dir := fake(t, true, pressure(10_000_000, 0))
	kills := make(chan uint64)
	stop, err := w.Guard(func(limit uint64, dying func()) bool {
		dying()
		kills <- limit
		// The next is asked for only when this one didn't help.
		tree.Write(t, dir, map[string]string{"memory.stat": "anon 1000\n"})
		kills <- 0
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	hit := func() {
		tree.Write(t, dir, map[string]string{"memory.events": strings.Replace(noKillsV2, "max 0", "max 1", 1)})
	}
	hit() // the limit was hit by what can be reclaimed: no kill
	tree.Write(t, dir, map[string]string{"memory.stat": "anon 80000000\nshmem 15000000\n"})
	hit()
	if limit := <-kills; limit != 100_000_000 {
		t.Errorf("limit %d", limit)
	}
	if got := w.Kills(); got != 1 {
		t.Errorf("want it counted before it dies, got %d", got)
	}
	<-kills
}

func TestFullAtOneBelowAndOneAboveItsShare(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		anon, shmem int
		more        map[string]string
		want        bool
	}{
		"one below":       {94_998_999, 0, nil, false},
		"at":              {94_999_000, 0, nil, true}, // and 1000 of kernel stacks
		"one above":       {94_999_001, 0, nil, true},
		"tmpfs counts":    {1_000_000, 94_000_000, nil, true},
		"no limit":        {99_000_000, 0, map[string]string{"memory.max": "max\n"}, false},
		"swap is used up": {99_000_000, 0, map[string]string{"memory.swap.max": "1000\n", "memory.swap.current": "1000\n"}, true},
	} {
		w, dir := fake(t, true, pressure(c.anon, c.shmem))
		tree.Write(t, dir, c.more)
		if _, got := w.full(); got != c.want {
			t.Errorf("%s: full is %v", name, got)
		}
	}
}

func TestGuardIsNotNeededWhereOneProcessIsKilled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		v2    bool
		files map[string]string
	}{
		"v1":               {false, map[string]string{"memory.oom_control": noKillsV1}},
		"v2, not grouped":  {true, map[string]string{"memory.events": noKillsV2, "memory.oom.group": "0\n"}},
		"v2, older kernel": {true, map[string]string{"memory.events": noKillsV2}},
	} {
		w, _ := fake(t, c.v2, c.files)
		if _, err := w.Guard(nil); !errors.Is(err, ErrNotNeeded) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func BenchmarkKills(b *testing.B) {
	w, err := Open()
	if err != nil {
		b.Skip(err)
	}
	for b.Loop() {
		w.Kills()
	}
}
