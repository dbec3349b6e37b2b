package memory

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// cgroup is the directory of the memory controller that counts this container.
type cgroup struct {
	dir string
	v2  bool
}

// errNone is returned where no memory controller can be seen.
var errNone = errors.New("no memory cgroup is mounted")

// find returns the cgroup of this process by /proc/self/cgroup and
// /proc/self/mountinfo (cgroups(7), proc(5)). It works alike with and without a
// cgroup namespace: what is mounted is compared with what the process is in.
func find(proc string) (cgroup, error) {
	own, err1 := os.ReadFile(filepath.Join(proc, "self/cgroup"))
	mounts, err2 := os.ReadFile(filepath.Join(proc, "self/mountinfo"))
	if err := errors.Join(err1, err2); err != nil {
		return cgroup{}, err
	}
	for _, v2 := range []bool{false, true} {
		path, ok := member(string(own), v2)
		if !ok {
			continue
		}
		for line := range strings.Lines(string(mounts)) {
			dir, ok := below(line, path, v2)
			if !ok {
				continue
			}
			c := cgroup{dir, v2}
			// The root of a hierarchy has no limit, and a v2 one beside a v1
			// memory controller has no memory files.
			if _, err := os.Stat(filepath.Join(dir, c.events())); err == nil {
				return c, nil
			} else if !errors.Is(err, fs.ErrNotExist) {
				return cgroup{}, fmt.Errorf("memory cgroup: %w", err)
			}
		}
	}
	return cgroup{}, errNone
}

// events names the file that counts kills.
func (c cgroup) events() string {
	if c.v2 {
		return "memory.events"
	}
	return "memory.oom_control"
}

// limit names the file that holds the limit in bytes.
func (c cgroup) limit() string {
	if c.v2 {
		return "memory.max"
	}
	return "memory.limit_in_bytes"
}

// member returns the path of the process's cgroup in the hierarchy.
func member(own string, v2 bool) (path string, ok bool) {
	for line := range strings.Lines(own) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) != 3 {
			continue
		}
		if v2 && f[0] == "0" && f[1] == "" || !v2 && slices.Contains(strings.Split(f[1], ","), "memory") {
			return f[2], true
		}
	}
	return "", false
}

// below returns where the cgroup at path is seen, if the mount of line shows it.
func below(line, path string, v2 bool) (dir string, ok bool) {
	before, after, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
	f, fsType := strings.Fields(before), strings.Fields(after)
	if !ok || len(f) < 5 || len(fsType) < 3 {
		return "", false
	}
	if v2 && fsType[0] != "cgroup2" || !v2 && (fsType[0] != "cgroup" || !slices.Contains(strings.Split(fsType[2], ","), "memory")) {
		return "", false
	}
	root, point := unescape(f[3]), unescape(f[4])
	rel, err := filepath.Rel(root, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return "", false
	}
	return filepath.Join(point, rel), true
}

// unescape undoes the octal escapes of mountinfo.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// count returns the number after name in a file of "name number" lines.
func count(content []byte, name string) (n uint64, ok bool) {
	for line := range bytes.Lines(content) {
		if key, number, found := bytes.Cut(line, []byte(" ")); found && string(key) == name {
			n, err := strconv.ParseUint(string(bytes.TrimSpace(number)), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
