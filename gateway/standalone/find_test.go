//go:build linux

package standalone

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The agent is the one that was named, else the one beside the gateway, else the one
// on PATH.
func TestFind(t *testing.T) {
	beside, onPath, empty := t.TempDir(), t.TempDir(), t.TempDir()
	for _, dir := range []string{beside, onPath} {
		if err := os.WriteFile(filepath.Join(dir, program), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", onPath)
	for dir, want := range map[string]string{beside: filepath.Join(beside, program), empty: filepath.Join(onPath, program)} {
		if got, err := search(dir); got != want || err != nil {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
	if got, err := find(filepath.Join(beside, program)); got != filepath.Join(beside, program) || err != nil {
		t.Errorf("named: %s, %v", got, err)
	}
	if _, err := find(filepath.Join(empty, program)); err == nil || !strings.Contains(err.Error(), "--agent="+empty) {
		t.Errorf("one that isn't there: %v", err)
	}
	t.Setenv("PATH", empty)
	if _, err := search(empty); err == nil || !strings.Contains(err.Error(), "--agent") || !strings.Contains(err.Error(), "make build") {
		t.Errorf("none: %v", err)
	}
}
