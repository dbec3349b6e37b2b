package debian

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/hack/image/catalog"
)

// Not parallel: they put an mmdebstrap of their own on the PATH.

var root = catalog.Root{Stage: "debian-test", Packages: []string{"bash", "jq"}, Script: "static.sh", Args: []string{"/", "/out"}}

// newBuilder has an mmdebstrap that logs its arguments, one call a line, and runs script.
func newBuilder(t *testing.T, script string) (b Builder, calls func() []string) {
	t.Helper()
	bin := t.TempDir()
	logged := filepath.Join(bin, "calls")
	fake := "#!/bin/sh\necho \"$@\" >>" + logged + "\n" + script + "\n"
	if err := os.WriteFile(filepath.Join(bin, "mmdebstrap"), []byte(fake), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	b = Builder{
		Cache: t.TempDir(), Epoch: time.Unix(1, 0), Log: io.Discard,
		tools: func(context.Context, io.Writer) error { return nil },
	}
	return b, func() []string {
		data, err := os.ReadFile(logged)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(data)), "\n")
	}
}

func mustRoot(t *testing.T, b Builder, root catalog.Root) Tree {
	t.Helper()
	tree, err := b.Root(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestRootIsMadeOfTheSuitesPackagesAndScript(t *testing.T) {
	b, calls := newBuilder(t, "cat; echo $SOURCE_DATE_EPOCH")
	tree := mustRoot(t, b, root)
	data, err := os.ReadFile(tree.Tar)
	if err != nil {
		t.Fatal(err)
	}
	// What mmdebstrap was given as standard input, and the time no file may pass.
	if string(data) != sources+"1\n" {
		t.Errorf("mmdebstrap was given %q", data)
	}
	args := strings.Fields(calls()[0])
	for _, want := range []string{"--variant=extract", "--include=bash,jq", "--dpkgopt=path-exclude=/usr/share/man/*"} {
		if !slices.Contains(args, want) {
			t.Errorf("mmdebstrap has no argument %s; it has %q", want, args)
		}
	}
	if !strings.Contains(calls()[0], `static.sh "$1" "$1"/out`) {
		t.Errorf("the script isn't told the root and what is below it: %s", calls()[0])
	}
}

func TestRootIsMadeOnceForARecipe(t *testing.T) {
	b, calls := newBuilder(t, "echo root")
	first, again := mustRoot(t, b, root), mustRoot(t, b, root)
	if first != again || len(calls()) != 1 {
		t.Errorf("the same recipe gave %v and %v with %d runs, want one", first, again, len(calls()))
	}
	more := root
	more.Packages = append(slices.Clone(root.Packages), "less")
	if other := mustRoot(t, b, more); other.Tar == first.Tar || len(calls()) != 2 {
		t.Errorf("a package more didn't make another root: %v", other)
	}
}

func TestRootOlderThanAskedForIsMadeAgain(t *testing.T) {
	b, calls := newBuilder(t, "echo root")
	tree := mustRoot(t, b, root)
	b.Since = time.Now()
	past := b.Since.Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(filepath.Dir(tree.Tar), "digest"), past, past); err != nil {
		t.Fatal(err)
	}
	mustRoot(t, b, root)
	if len(calls()) != 2 {
		t.Errorf("mmdebstrap ran %d times, want 2", len(calls()))
	}
}

func TestFailedRootTellsWhyAndLeavesNothing(t *testing.T) {
	b, _ := newBuilder(t, "echo partial; echo 'E: no such package' >&2; exit 1")
	_, err := b.Root(t.Context(), root)
	if err == nil || !strings.Contains(err.Error(), "E: no such package") || !strings.Contains(err.Error(), root.Stage) {
		t.Errorf("the error is %v, want mmdebstrap's words and the root's name", err)
	}
	left, err := filepath.Glob(filepath.Join(b.Cache, "debian", "*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 1 || filepath.Ext(left[0]) != ".lock" {
		t.Errorf("the cache holds %q, want the lock alone", left)
	}
}

func TestMissingToolsAreNamedWithTheMend(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := ensureTools(t.Context(), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "missing mmdebstrap") || !strings.Contains(err.Error(), "apt-get install mmdebstrap") {
		t.Errorf("the error is %v, want what is missing and how to get it", err)
	}
}
