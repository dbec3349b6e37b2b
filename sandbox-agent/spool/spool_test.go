package spool

import (
	"os"
	"testing"
)

func TestFilesHaveNoName(t *testing.T) {
	dir := t.TempDir()
	for name, create := range map[string]func() (*os.File, error){
		"without a name":       func() (*os.File, error) { return Create([]string{"/nowhere", dir}) },
		"name removed at once": func() (*os.File, error) { return createUnlinked(dir) },
		"in memory":            func() (*os.File, error) { return Memory("x", nil) },
	} {
		f, err := create()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		defer f.Close()
		if _, err := f.WriteString("x"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
			t.Errorf("%s: %v, %v", name, entries, err)
		}
	}
}

func TestNoPlaceIsAnError(t *testing.T) {
	if _, err := Create([]string{"/nowhere", "/proc"}); err == nil {
		t.Error("want an error where no file can be made")
	}
}
