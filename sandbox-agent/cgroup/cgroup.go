// Package cgroup finds the control groups that count and bound this container.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Dir is the directory of a controller's cgroup that this process is in.
type Dir struct {
	Path string
	V2   bool
}

// ErrNone is returned where no such controller can be seen.
var ErrNone = errors.New("no such cgroup is mounted")

// Find returns the controller's cgroup of this process by self/cgroup and
// self/mountinfo in proc (cgroups(7), proc(5)). It works alike with and without a
// cgroup namespace: what is mounted is compared with what the process is in. v1
// and v2 name a file that the controller has there in each version; the root of a
// hierarchy has none.
func Find(proc, controller, v1, v2 string) (Dir, error) {
	own, err1 := os.ReadFile(filepath.Join(proc, "self/cgroup"))
	mounts, err2 := os.ReadFile(filepath.Join(proc, "self/mountinfo"))
	if err := errors.Join(err1, err2); err != nil {
		return Dir{}, err
	}
	for _, is2 := range []bool{false, true} {
		path, ok := member(string(own), controller, is2)
		if !ok {
			continue
		}
		file := v1
		if is2 {
			file = v2
		}
		for line := range strings.Lines(string(mounts)) {
			dir, ok := below(line, path, controller, is2)
			if !ok {
				continue
			}
			// A v2 one beside a v1 controller has no files of it.
			if _, err := os.Stat(filepath.Join(dir, file)); err == nil {
				return Dir{dir, is2}, nil
			} else if !errors.Is(err, fs.ErrNotExist) {
				return Dir{}, fmt.Errorf("%s cgroup: %w", controller, err)
			}
		}
	}
	return Dir{}, fmt.Errorf("%s: %w", controller, ErrNone)
}

// member returns the path of the process's cgroup in the hierarchy.
func member(own, controller string, v2 bool) (path string, ok bool) {
	for line := range strings.Lines(own) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) != 3 {
			continue
		}
		if v2 && f[0] == "0" && f[1] == "" || !v2 && slices.Contains(strings.Split(f[1], ","), controller) {
			return f[2], true
		}
	}
	return "", false
}

// below returns where the cgroup at path is seen, if the mount of line shows it.
func below(line, path, controller string, v2 bool) (dir string, ok bool) {
	before, after, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
	f, fsType := strings.Fields(before), strings.Fields(after)
	if !ok || len(f) < 5 || len(fsType) < 3 {
		return "", false
	}
	if v2 && fsType[0] != "cgroup2" || !v2 && (fsType[0] != "cgroup" || !slices.Contains(strings.Split(fsType[2], ","), controller)) {
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
