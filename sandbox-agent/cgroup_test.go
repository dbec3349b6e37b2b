package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// newCgroup makes a control group (v1) of one controller, with some of its files
// written, beneath the one that the test runs in. Where that can't be, the test
// is skipped: it needs root and a machine with that hierarchy.
func newCgroup(t *testing.T, controller string, files map[string]string) (dir string) {
	t.Helper()
	const root = "/sys/fs/cgroup"
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	parent := ""
	for line := range strings.Lines(string(own)) {
		if f := strings.SplitN(strings.TrimSpace(line), ":", 3); len(f) == 3 && f[1] == controller {
			parent = filepath.Join(root, controller, f[2])
		}
	}
	if parent == "" {
		t.Skipf("needs cgroup v1 with the controller %s", controller)
	}
	if dir, err = os.MkdirTemp(parent, "berth-test-"); err != nil {
		t.Skipf("needs root, to make a cgroup: %v", err)
	}
	t.Cleanup(func() {
		// Its last process is gone from it a moment after it was waited for.
		for deadline := time.Now().Add(10 * time.Second); ; {
			err := os.Remove(dir)
			if err == nil || time.Now().After(deadline) {
				if err != nil {
					t.Error(err)
				}
				return
			}
		}
	})
	for name, content := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(content), 0))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// enterCgroup is how a shell enters one.
func enterCgroup(dir string) string { return "echo 0 > " + dir + "/cgroup.procs" }
