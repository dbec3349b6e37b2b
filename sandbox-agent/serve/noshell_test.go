package serve

import (
	"os"
	"path/filepath"
	"testing"
)

func TestNoShellIsToldInTheTerminationLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "termination-log")
	if err := os.WriteFile(path, []byte("of an earlier run, which was longer than this one is going to be, as it goes on"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := tellNoShell(path); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := "NoShell: " + noShell + "\n"; string(got) != want {
		t.Errorf("termination log holds %q, want %q", got, want)
	}
}

func TestNoShellIsNotToldWhereThereIsNoTerminationLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "none")
	if err := tellNoShell(path); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("a file was made at %s", path)
	}
}
