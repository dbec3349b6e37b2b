package affinity

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/test/tree"
)

func TestSessionHasWhatItsLimitLetsItUseUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		all     []int
		cores   float64
		start   int
		session []int
		own     []int
	}{
		"one of two":                    {[]int{0, 1}, 1, 0, []int{0}, []int{1}},
		"the other one of two":          {[]int{0, 1}, 1, 1, []int{1}, []int{0}},
		"two of four for one":           {[]int{0, 1, 2, 3}, 1, 1, []int{1, 2}, []int{3, 0}},
		"two of three for one":          {[]int{4, 6, 8}, 1, 2, []int{8, 4}, []int{6}},
		"one for a half":                {[]int{0, 1, 2, 3}, 0.5, 0, []int{0}, []int{1, 2, 3}},
		"one for a tenth":               {[]int{0, 1}, 0.1, 0, []int{0}, []int{1}},
		"three for one and a half":      {[]int{0, 1, 2, 3}, 1.5, 0, []int{0, 1, 2}, []int{3}},
		"two of three for more than 1":  {[]int{0, 1, 2}, 1.001, 0, []int{0, 1}, []int{2}},
		"all of two for more than 1":    {[]int{0, 1}, 1.001, 1, []int{0, 1}, nil},
		"all for as many":               {[]int{0, 1, 2}, 3, 0, []int{0, 1, 2}, nil},
		"all but one for one less":      {[]int{0, 1, 2}, 2, 0, []int{0, 1}, []int{2}},
		"all for more than there are":   {[]int{0, 1, 2}, 1e18, 0, []int{0, 1, 2}, nil},
		"the only one":                  {[]int{3}, 0.1, 0, []int{3}, nil},
		"as many as twice the limit is": {[]int{0, 1, 2, 3}, 2, 3, []int{3, 0, 1}, []int{2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			session, own := divide(c.all, c.cores, c.start)
			if diff := cmp.Diff([][]int{c.session, c.own}, [][]int{session, own}); diff != "" {
				t.Errorf("session and own (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLimitOfTheContainer(t *testing.T) {
	t.Parallel()
	const v1, v2 = "4:cpu,cpuacct:/\n", "0::/\n"
	for name, c := range map[string]struct {
		own   string
		files map[string]string
		want  float64
		err   bool
	}{
		"v1":                     {own: v1, files: map[string]string{quotaV1: "150000\n", periodV1: "100000\n"}, want: 1.5},
		"v1, none":               {own: v1, files: map[string]string{quotaV1: "-1\n", periodV1: "100000\n"}, err: true},
		"v1, no period":          {own: v1, files: map[string]string{quotaV1: "100000\n"}, err: true},
		"v1, no time in it":      {own: v1, files: map[string]string{quotaV1: "100000\n", periodV1: "0\n"}, err: true},
		"v2":                     {own: v2, files: map[string]string{maxV2: "50000 100000\n"}, want: 0.5},
		"v2, none":               {own: v2, files: map[string]string{maxV2: "max 100000\n"}, err: true},
		"v2, malformed":          {own: v2, files: map[string]string{maxV2: "50000\n"}, err: true},
		"v2, not a number":       {own: v2, files: map[string]string{maxV2: "many 100000\n"}, err: true},
		"v2, nothing":            {own: v2, files: map[string]string{maxV2: "0 100000\n"}, err: true},
		"v2, negative":           {own: v2, files: map[string]string{maxV2: "-5 100000\n"}, err: true},
		"the hierarchy's root":   {own: v2, files: nil, err: true},
		"another's, not mounted": {own: "4:memory:/\n", files: map[string]string{quotaV1: "1\n", periodV1: "1\n"}, err: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			mounts := fmt.Sprintf("35 31 0:32 / %[1]s ro - cgroup cgroup rw,cpu,cpuacct\n36 31 0:33 / %[1]s ro - cgroup2 cgroup rw\n", dir)
			tree.Write(t, dir, map[string]string{"proc/self/cgroup": c.own, "proc/self/mountinfo": mounts})
			tree.Write(t, dir, c.files)
			got, err := limit(filepath.Join(dir, "proc"))
			if got != c.want || (err != nil) != c.err {
				t.Errorf("want %v and error %v, got %v, %v", c.want, c.err, got, err)
			}
		})
	}
}

// TestEveryThreadIsRestricted restricts the test's own threads, and so stays alone (not parallel).
func TestEveryThreadIsRestricted(t *testing.T) {
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := restrict(&before); err != nil {
			t.Error(err)
		}
	}()
	one := Set(list(&before)[:1])
	if err := restrict(one); err != nil {
		t.Fatal(err)
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		var tid int
		if _, err := fmt.Sscan(thread.Name(), &tid); err != nil {
			t.Fatal(err)
		}
		var has unix.CPUSet
		if err := unix.SchedGetaffinity(tid, &has); err != nil && !errors.Is(err, unix.ESRCH) || err == nil && has != *one {
			t.Errorf("thread %d: got %v, %v", tid, list(&has), err)
		}
	}
}
