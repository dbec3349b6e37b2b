package cgroup

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/test/tree"
)

func TestFoundTheWayAContainerSeesIt(t *testing.T) {
	t.Parallel()
	const there = "0\n"
	for name, c := range map[string]struct {
		own, mounts string // %s: where the test's files are
		files       map[string]string
		want        string // below that; empty: none
		v2          bool
	}{
		"v1, container's own directory": {
			own:    "9:pids:/kubepods/pod1/c1\n4:memory:/kubepods/pod1/c1\n0::/\n",
			mounts: "30 29 0:25 / /proc rw - proc proc rw\n35 31 0:32 /kubepods/pod1/c1 %s/memory ro,relatime master:9 - cgroup cgroup rw,memory\n",
			files:  map[string]string{"memory/memory.oom_control": there},
			want:   "memory",
		},
		"v1, cgroup namespace": {
			own:    "4:cpu,memory:/\n",
			mounts: "35 31 0:32 / %s/memory ro - cgroup cgroup rw,cpu,memory\n",
			files:  map[string]string{"memory/memory.oom_control": there},
			want:   "memory",
		},
		"v1, whole hierarchy": {
			own:    "4:memory:/jobs/one\n",
			mounts: "35 31 0:32 / %s/memory rw - cgroup cgroup rw,memory\n",
			files:  map[string]string{"memory/memory.oom_control": there, "memory/jobs/one/memory.oom_control": there},
			want:   "memory/jobs/one",
		},
		"v2, cgroup namespace": {
			own:    "0::/\n",
			mounts: "35 31 0:32 / %s/cg ro - cgroup2 cgroup rw\n",
			files:  map[string]string{"cg/memory.events": there},
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
			files:  map[string]string{"memory/a/memory.oom_control": there, "unified/b/cgroup.procs": ""},
			want:   "memory/a",
		},
		"mount of another cgroup": {
			own:    "4:memory:/a\n",
			mounts: "35 31 0:32 /b %s/memory rw - cgroup cgroup rw,memory\n",
			files:  map[string]string{"memory/memory.oom_control": there},
		},
		"sibling with the same beginning": {
			own:    "4:memory:/ab\n",
			mounts: "35 31 0:32 /a %s/memory rw - cgroup cgroup rw,memory\n",
			files:  map[string]string{"memory/memory.oom_control": there},
		},
		"nothing mounted":   {own: "0::/\n", mounts: "30 29 0:25 / /proc rw - proc proc rw\n%s"},
		"malformed":         {own: "x\n::\n", mounts: "35\n - \n%s - cgroup2\n"},
		"space in the path": {own: "0::/\n", mounts: `35 31 0:32 / %s/a\040b ro - cgroup2 cgroup rw`, files: map[string]string{"a b/memory.events": there}, want: "a b", v2: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			tree.Write(t, dir, c.files)
			tree.Write(t, dir, map[string]string{"proc/self/cgroup": c.own, "proc/self/mountinfo": fmt.Sprintf(c.mounts, dir)})
			got, err := Find(filepath.Join(dir, "proc"), "memory", "memory.oom_control", "memory.events")
			if c.want == "" {
				if !errors.Is(err, ErrNone) {
					t.Fatalf("got %+v, %v", got, err)
				}
				return
			}
			if diff := cmp.Diff(Dir{filepath.Join(dir, c.want), c.v2}, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}
