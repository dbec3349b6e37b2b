package node

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// hierarchy is one mounted cgroup hierarchy.
type hierarchy struct {
	path string
	v2   bool
}

// hierarchies lists where cgroups are mounted: on cgroup v1 one place for each
// controller.
func hierarchies() ([]hierarchy, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	list := parseHierarchies(data)
	if len(list) == 0 {
		return nil, errors.New("no cgroup hierarchy is mounted: mount cgroup2 on /sys/fs/cgroup")
	}
	return list, nil
}

// parseHierarchies reads /proc/PID/mountinfo, see proc_pid_mountinfo(5).
func parseHierarchies(mountinfo []byte) []hierarchy {
	var list []hierarchy
	for lines := bufio.NewScanner(bytes.NewReader(mountinfo)); lines.Scan(); {
		before, after, found := strings.Cut(lines.Text(), " - ")
		fields := strings.Fields(before)
		if !found || len(fields) < 5 {
			continue
		}
		switch kind, _, _ := strings.Cut(after, " "); kind {
		case "cgroup", "cgroup2":
			list = append(list, hierarchy{path: fields[4], v2: kind == "cgroup2"})
		}
	}
	return list
}

// makeCgroups makes the cgroup in every hierarchy: kubelet wants its root to be
// there.
func makeCgroups(cgroup string) error {
	list, err := hierarchies()
	if err != nil {
		return err
	}
	for _, h := range list {
		dir := h.path
		for part := range strings.SplitSeq(strings.Trim(cgroup, "/"), "/") {
			if h.v2 {
				if err := delegate(dir); err != nil {
					return err
				}
			}
			parent := dir
			dir = filepath.Join(dir, part)
			if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("making a cgroup (is the hierarchy mounted read-only?): %w", err)
			}
			if err := inheritCpuset(parent, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// delegate turns on, for the children of a v2 cgroup, every controller that it
// has itself.
func delegate(dir string) error {
	controllers, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for name := range strings.FieldsSeq(string(controllers)) {
		err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+name), 0)
		if err != nil {
			return fmt.Errorf("turning on cgroup controller %s below %s (in a container, only an empty cgroup can do that): %w", name, dir, err)
		}
	}
	return nil
}

// inheritCpuset fills a new v1 cpuset: no process can enter an empty one.
func inheritCpuset(parent, dir string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		now, err := os.ReadFile(filepath.Join(dir, file))
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another controller's hierarchy
		}
		if err != nil {
			return err
		}
		if len(bytes.TrimSpace(now)) > 0 {
			continue
		}
		value, err := os.ReadFile(filepath.Join(parent, file))
		if err == nil && len(bytes.TrimSpace(value)) > 0 {
			err = os.WriteFile(filepath.Join(dir, file), value, 0)
		}
		if err != nil {
			return fmt.Errorf("filling a cpuset: %w", err)
		}
	}
	return nil
}

// emptyWait is how long the kernel may take until a killed process has left its
// cgroup.
const (
	emptyWait  = 20 * time.Second
	emptyPause = 20 * time.Millisecond
)

// RemoveCgroups removes the cgroup and all below it from every hierarchy. Its
// processes must have been killed.
func RemoveCgroups(ctx context.Context, cgroup string) error {
	list, err := hierarchies()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, emptyWait)
	defer cancel()
	for _, h := range list {
		if err := removeTree(ctx, filepath.Join(h.path, cgroup)); err != nil {
			return fmt.Errorf("removing a cgroup: %w", err)
		}
	}
	return nil
}

// removeTree removes a folder of a cgroup hierarchy, whose files can't and
// needn't be removed.
func removeTree(ctx context.Context, dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeTree(ctx, filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	for {
		err := unix.Rmdir(dir)
		if err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) {
			return &fs.PathError{Op: "rmdir", Path: dir, Err: err}
		}
		select {
		case <-ctx.Done():
			return &fs.PathError{Op: "rmdir", Path: dir, Err: err}
		case <-time.After(emptyPause):
		}
	}
}
