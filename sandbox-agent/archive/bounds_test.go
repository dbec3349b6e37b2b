package archive

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestATreeIsBounded(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(top, "a", "b"), 0o700), os.WriteFile(filepath.Join(top, "a", "file"), make([]byte, 100), 0o600), os.WriteFile(filepath.Join(top, "f"), make([]byte, 100), 0o600))
	for name, c := range map[string]struct {
		bounds bounds
		bytes  int64
		want   error
	}{
		"all at their bounds":   {bounds{entries: 4, depth: 3, names: 1 + 1 + 1 + 4}, 200, nil},
		"all one below":         {bounds{entries: 5, depth: 4, names: 8}, 201, nil},
		"one entry more":        {bounds{entries: 3, depth: 3, names: 7}, 200, ErrEntries},
		"one level more":        {bounds{entries: 4, depth: 2, names: 7}, 200, ErrDepth},
		"one byte of name more": {bounds{entries: 4, depth: 3, names: 6}, 200, ErrEntries},
		"one byte more":         {bounds{entries: 4, depth: 3, names: 7}, 199, ErrBytes},
	} {
		if _, _, err := pack(t, top, c.bounds, c.bytes); !errors.Is(err, c.want) {
			t.Errorf("%s: want %v, got %v", name, c.want, err)
		}
	}
}

// TestPathsAreBounded: a tree holds longer paths than can be opened by name.
func TestPathsAreBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		last int
		want error
	}{{last: 254}, {last: 255}, {last: 256, want: ErrDepth}} {
		parent := t.TempDir()
		top := filepath.Join(parent, strings.Repeat("t", 254))
		must(t, os.Mkdir(top, 0o700))
		at, err := os.OpenRoot(top)
		must(t, err)
		for range 14 { // 254 + 14*255 = 3824 bytes, the last but one makes 3839+
			must(t, at.Mkdir(strings.Repeat("d", 254), 0o700))
			next, err := at.OpenRoot(strings.Repeat("d", 254))
			must(t, err, at.Close())
			at = next
		}
		// 4095 - 3824 = 271 bytes are left, with two slashes.
		must(t, at.Mkdir(strings.Repeat("e", 14), 0o700))
		must(t, at.Mkdir(strings.Repeat("e", 14)+"/"+strings.Repeat("f", min(c.last, 255)), 0o700), at.Close())
		if c.last > 255 {
			must(t, os.Rename(top, top+"t"))
			top += "t"
		}
		if _, _, err := pack(t, top, loose, 0); !errors.Is(err, c.want) {
			t.Errorf("%d: want %v, got %v", c.last, c.want, err)
		}
	}
}

// TestHostileTreesEndSoon: none of them is read to its end.
func TestHostileTreesEndSoon(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	must(t, os.WriteFile(filepath.Join(top, "sparse"), nil, 0o600), os.Truncate(filepath.Join(top, "sparse"), 1<<40))
	if out, _, err := pack(t, top, loose, 1<<30); !errors.Is(err, ErrBytes) || len(out) > 1<<10 {
		t.Errorf("a sparse file of 1 TiB: %d bytes, %v", len(out), err)
	}
	deep := t.TempDir()
	must(t, nest(deep, 10_000))
	before := descriptors(t)
	if _, _, err := pack(t, deep, bounds{entries: MaxEntries, depth: MaxDepth, names: maxNames}, 0); !errors.Is(err, ErrDepth) {
		t.Errorf("10,000 levels: %v", err)
	}
	if after := descriptors(t); after > before+MaxDepth/2 { // other tests run too
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

// nest makes directories in each other. Removal by RemoveAll copes with them.
func nest(top string, levels int) error {
	fd, err := unix.Open(top, unix.O_PATH|unix.O_CLOEXEC, 0)
	for ; err == nil && levels > 0; levels-- {
		if err = unix.Mkdirat(fd, "d", 0o700); err != nil {
			break
		}
		var next int
		next, err = unix.Openat(fd, "d", unix.O_PATH|unix.O_CLOEXEC, 0)
		unix.Close(fd)
		fd = next
	}
	return errors.Join(err, unix.Close(fd))
}

func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(all)
}
