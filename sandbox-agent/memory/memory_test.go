package memory

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

const (
	noKillsV1 = "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n"
	noKillsV2 = "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n"
)

func TestCgroupIsFoundTheWayAContainerSeesIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		own, mounts string // %s: where the test's files are
		files       map[string]string
		want        string // below that; empty: none
		v2          bool
	}{
		"v1, container's own directory": {
			own:    "9:pids:/kubepods/pod1/c1\n4:memory:/kubepods/pod1/c1\n0::/\n",
			mounts: "30 29 0:25 / /proc rw - proc proc rw\n35 31 0:32 /kubepods/pod1/c1 %s/memory ro,relatime master:9 - cgroup cgroup rw,memory\n",
			files:  map[string]string{"memory/memory.oom_control": noKillsV1},
			want:   "memory",
		},
		"v1, cgroup namespace": {
			own:    "4:cpu,memory:/\n",
			mounts: "35 31 0:32 / %s/memory ro - cgroup cgroup rw,cpu,memory\n",
			files:  map[string]string{"memory/memory.oom_control": noKillsV1},
			want:   "memory",
		},
		"v1, whole hierarchy": {
			own:    "4:memory:/jobs/one\n",
			mounts: "35 31 0:32 / %s/memory rw - cgroup cgroup rw,memory\n",
			files:  map[string]string{"memory/memory.oom_control": noKillsV1, "memory/jobs/one/memory.oom_control": noKillsV1},
			want:   "memory/jobs/one",
		},
		"v2, cgroup namespace": {
			own:    "0::/\n",
			mounts: "35 31 0:32 / %s/cg ro - cgroup2 cgroup rw\n",
			files:  map[string]string{"cg/memory.events": noKillsV2},
			want:   "cg", v2: true,
		},
		"v2, root of the hierarchy": {
			own:    "0::/\n",
			mounts: "35 31 0:32 / %s/cg rw - cgroup2 cgroup rw\n",
			files:  map[string]string{"cg/cgroup.procs": ""},
		},
		"v1 memory beside v2": {
			own:    "4:memory:/a\n0::/b\n",
			mounts: "41 31 0:38 / %[1]s/unified rw - cgroup2 cgroup2 rw\n35 31 0:32 / %[1]s/memory rw - cgroup cgroup rw,memory\n",
			files:  map[string]string{"memory/a/memory.oom_control": noKillsV1, "unified/b/cgroup.procs": ""},
			want:   "memory/a",
		},
		"mount of another cgroup": {
			own:    "4:memory:/a\n",
			mounts: "35 31 0:32 /b %s/memory rw - cgroup cgroup rw,memory\n",
			files:  map[string]string{"memory/memory.oom_control": noKillsV1},
		},
		"sibling with the same beginning": {
			own:    "4:memory:/ab\n",
			mounts: "35 31 0:32 /a %s/memory rw - cgroup cgroup rw,memory\n",
			files:  map[string]string{"memory/memory.oom_control": noKillsV1},
		},
		"nothing mounted":   {own: "0::/\n", mounts: "30 29 0:25 / /proc rw - proc proc rw\n%s"},
		"malformed":         {own: "x\n::\n", mounts: "35\n - \n%s - cgroup2\n"},
		"space in the path": {own: "0::/\n", mounts: `35 31 0:32 / %s/a\040b ro - cgroup2 cgroup rw`, files: map[string]string{"a b/memory.events": noKillsV2}, want: "a b", v2: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, c.files)
			write(t, dir, map[string]string{"proc/self/cgroup": c.own, "proc/self/mountinfo": fmt.Sprintf(c.mounts, dir)})
			got, err := find(filepath.Join(dir, "proc"))
			if c.want == "" {
				if err == nil {
					t.Fatalf("found %+v", got)
				}
				return
			}
			if diff := cmp.Diff(cgroup{filepath.Join(dir, c.want), c.v2}, got, cmp.AllowUnexported(cgroup{})); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// fake returns a watch of a cgroup whose files are the test's.
func fake(t testing.TB, v2 bool, files map[string]string) (*Watch, string) {
	t.Helper()
	dir := t.TempDir()
	own, mount := "4:memory:/\n", "35 31 0:32 / "+dir+" rw - cgroup cgroup rw,memory\n"
	if v2 {
		own, mount = "0::/\n", "35 31 0:32 / "+dir+" rw - cgroup2 cgroup2 rw\n"
	}
	write(t, dir, files)
	write(t, dir, map[string]string{"proc/self/cgroup": own, "proc/self/mountinfo": mount})
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
		write(t, dir, map[string]string{c.file: c.after})
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
	write(t, dir, map[string]string{
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
		write(t, dir, map[string]string{"memory.stat": "anon 1000\n"})
		kills <- 0
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	hit := func() {
		write(t, dir, map[string]string{"memory.events": strings.Replace(noKillsV2, "max 0", "max 1", 1)})
	}
	hit() // the limit was hit by what can be reclaimed: no kill
	write(t, dir, map[string]string{"memory.stat": "anon 80000000\nshmem 15000000\n"})
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
		write(t, dir, c.more)
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
