package components

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

func nobodyElse() { panic("there is nobody to wait for") }

func TestCacheDir(t *testing.T) {
	for _, tc := range []struct{ berth, xdg, want string }{
		{"/a", "/b", "/a"},
		{"", "/b", "/b/berth"},
		{"", "", "/home/someone/.cache/berth"},
	} {
		t.Setenv("BERTH_CACHE", tc.berth)
		t.Setenv("XDG_CACHE_HOME", tc.xdg)
		t.Setenv("HOME", "/home/someone")
		if got, err := CacheDir(); err != nil || got != tc.want {
			t.Errorf("BERTH_CACHE=%s XDG_CACHE_HOME=%s: got %s, %v, want %s", tc.berth, tc.xdg, got, err, tc.want)
		}
	}
}

func TestAHalfBuiltComponentIsNeverThere(t *testing.T) {
	t.Parallel()
	cache := Cache{Dir: t.TempDir()}
	final := filepath.Join(cache.Dir, "thing")
	broken := errors.New("broken")
	err := cache.publish("thing", nobodyElse, func(dir string) error {
		return errors.Join(os.WriteFile(filepath.Join(dir, "half"), nil, 0o644), broken)
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want the builder's own error", err)
	}
	if _, err := os.Stat(final); err == nil {
		t.Fatal("what failed to build is there")
	}

	// As a killed process leaves it.
	left := filepath.Join(cache.Dir, "unfinished", "thing")
	if err := os.MkdirAll(left, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(left, "half"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	err = cache.publish("thing", nobodyElse, func(dir string) error {
		if _, err := os.Stat(final); err == nil {
			t.Error("the folder has its name before it is whole")
		}
		return os.WriteFile(filepath.Join(dir, "whole"), nil, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(final)
	if err != nil || len(entries) != 1 || entries[0].Name() != "whole" {
		t.Errorf("the folder holds %v, %v, want the file `whole` alone", entries, err)
	}
}

func TestConcurrentBuildsBuildOnce(t *testing.T) {
	t.Parallel()
	cache := Cache{Dir: t.TempDir()}
	var built atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			err := cache.publish("thing", func() {}, func(dir string) error {
				built.Add(1)
				return os.WriteFile(filepath.Join(dir, "whole"), nil, 0o644)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if built.Load() != 1 {
		t.Errorf("built %d times, want once", built.Load())
	}
}

func TestBuildOutput(t *testing.T) {
	t.Parallel()
	var out buildOutput
	for _, piece := range []string{"go: downloading k8s.io/api v0.37.2\nk8s.io/a", "pi/core/v1\nerrors\n", "# k8s.io/api\nx.go:1:2: undefined: y"} {
		if n, err := out.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Fatalf("Write: %d, %v", n, err)
		}
	}
	if got := out.packages.Load(); got != 2 {
		t.Errorf("%d packages, want 2", got)
	}
	if got, want := out.rest(), "# k8s.io/api\nx.go:1:2: undefined: y\n"; got != want {
		t.Errorf("the rest is %q, want %q", got, want)
	}
}
