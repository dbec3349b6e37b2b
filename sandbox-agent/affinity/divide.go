package affinity

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"github.com/berth-dev/berth/sandbox-agent/cgroup"
)

// spread is how many processors the session may use for each that its limit lets it
// use up. More would let the kernel balance better; but who uses up the limit on
// many at once is halted for the rest of its period, and the agent with it. With two
// that is half a period (50 ms) at most.
const spread = 2

// divide divides processors, of which the container may use cores, from the one at
// start on. The session gets as many as it may use up, and up to spread times that
// while at least one is left. own is empty where none is.
func divide(all []int, cores float64, start int) (session, own []int) {
	need, want := int(math.Ceil(cores)), int(min(cores*spread, float64(len(all))))
	n := max(need, min(want, len(all)-1))
	if n >= len(all) {
		return all, nil
	}
	for i := range all {
		p := all[(start+i)%len(all)]
		if i < n {
			session = append(session, p)
		} else {
			own = append(own, p)
		}
	}
	return session, own
}

// Files of the processor's controller.
const (
	quotaV1  = "cpu.cfs_quota_us"
	periodV1 = "cpu.cfs_period_us"
	maxV2    = "cpu.max" // "quota period", or "max period"
)

var errNoLimit = errors.New("the container has no CPU limit")

// limit returns how many processors' time the container may use.
func limit(proc string) (cores float64, err error) {
	dir, err := cgroup.Find(proc, "cpu", quotaV1, maxV2)
	if err != nil {
		return 0, err
	}
	var fields [][]byte
	files := []string{quotaV1, periodV1}
	if dir.V2 {
		files = []string{maxV2}
	}
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(dir.Path, file))
		if err != nil {
			return 0, fmt.Errorf("cpu cgroup: %w", err)
		}
		fields = append(fields, bytes.Fields(content)...)
	}
	if len(fields) != 2 {
		return 0, fmt.Errorf("cpu cgroup: unexpected form of %s in %s", files[0], dir.Path)
	}
	if s := string(fields[0]); s == "max" || s == "-1" {
		return 0, errNoLimit
	}
	quota, err1 := strconv.ParseUint(string(fields[0]), 10, 63)
	period, err2 := strconv.ParseUint(string(fields[1]), 10, 63)
	if err := errors.Join(err1, err2); err != nil || quota == 0 || period == 0 {
		return 0, fmt.Errorf("cpu cgroup: unexpected quota %q of %q in %s", fields[0], fields[1], dir.Path)
	}
	return float64(quota) / float64(period), nil
}
