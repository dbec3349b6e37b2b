package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

var born = time.Unix(1_700_000_000, 0)

// loose are bounds that no test meets by chance.
var loose = bounds{entries: 1000, depth: 100, names: 1 << 20}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// pack archives the directory, or file, at path.
func pack(t *testing.T, path string, b bounds, size int64) ([]byte, Report, error) {
	t.Helper()
	top, err := os.Open(path)
	must(t, err)
	defer top.Close()
	var out bytes.Buffer
	report, err := write(t.Context(), &out, top, Options{Name: filepath.Base(path), Bytes: size}, b)
	return out.Bytes(), report, err
}

// entry is one of an archive: what tests compare.
type entry struct {
	Name, Link, Content string
	Kind                byte
	Mode                int64
	Time                int64
}

func entries(t *testing.T, packed []byte) (all []entry) {
	t.Helper()
	zipped, err := gzip.NewReader(bytes.NewReader(packed))
	must(t, err)
	for r := tar.NewReader(zipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		must(t, err)
		content, err := io.ReadAll(r)
		must(t, err)
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" || !h.AccessTime.IsZero() || !h.ChangeTime.IsZero() {
			t.Errorf("%q says who owns or reads it: %+v", h.Name, h)
		}
		all = append(all, entry{h.Name, h.Linkname, string(content), h.Typeflag, h.Mode, h.ModTime.Unix()})
	}
}

func names(all []entry) (out []string) {
	for _, e := range all {
		out = append(out, e.Name)
	}
	return out
}

// TestATreeIsWhole: names of any bytes, modes, times, links as links, sorted.
func TestATreeIsWhole(t *testing.T) {
	t.Parallel()
	top := filepath.Join(t.TempDir(), "tree")
	long := strings.Repeat("l", 255)
	must(t,
		os.MkdirAll(filepath.Join(top, "sub", long, long), 0o755),
		os.Mkdir(filepath.Join(top, "empty"), 0o700),
		os.WriteFile(filepath.Join(top, "run.sh"), []byte("#!/bin/sh\n"), 0o755),
		os.WriteFile(filepath.Join(top, "sub", long, long, "deep"), []byte("deep"), 0o600),
		os.WriteFile(filepath.Join(top, "a\nb \u202e\xff"), []byte("odd"), 0o640),
		os.WriteFile(filepath.Join(top, "..name"), nil, 0o600),
		os.WriteFile(filepath.Join(top, "zeros"), make([]byte, bufferSize+1), 0o600),
		os.Symlink("/etc/passwd", filepath.Join(top, "out")),
		os.Symlink("sub", filepath.Join(top, "to-sub")),
		os.Chmod(filepath.Join(top, "run.sh"), 0o4755|os.ModeSetuid),
	)
	must(t, filepath.WalkDir(top, func(path string, _ os.DirEntry, err error) error {
		at := unix.NsecToTimespec(born.Add(time.Second / 2).UnixNano())
		return errors.Join(err, unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW))
	}))
	packed, report, err := pack(t, top, loose, math.MaxInt64)
	must(t, err)
	if report.String() != "" {
		t.Errorf("want nothing to say, got %q", report)
	}
	at := born.Unix()
	want := []entry{
		{"tree/", "", "", tar.TypeDir, 0o755, at},
		{"tree/..name", "", "", tar.TypeReg, 0o600, at},
		{"tree/a\nb \u202e\xff", "", "odd", tar.TypeReg, 0o640, at},
		{"tree/empty/", "", "", tar.TypeDir, 0o700, at},
		{"tree/out", "/etc/passwd", "", tar.TypeSymlink, 0o777, at},
		{"tree/run.sh", "", "#!/bin/sh\n", tar.TypeReg, 0o4755, at},
		{"tree/sub/", "", "", tar.TypeDir, 0o755, at},
		{"tree/sub/" + long + "/", "", "", tar.TypeDir, 0o755, at},
		{"tree/sub/" + long + "/" + long + "/", "", "", tar.TypeDir, 0o755, at},
		{"tree/sub/" + long + "/" + long + "/deep", "", "deep", tar.TypeReg, 0o600, at},
		{"tree/to-sub", "sub", "", tar.TypeSymlink, 0o777, at},
		{"tree/zeros", "", string(make([]byte, bufferSize+1)), tar.TypeReg, 0o600, at},
	}
	if diff := cmp.Diff(want, entries(t, packed)); diff != "" {
		t.Errorf("(-want +got):\n%.4000s", diff)
	}
	again, _, err := pack(t, top, loose, math.MaxInt64)
	if err != nil || !bytes.Equal(packed, again) {
		t.Errorf("want the same bytes for the same tree (%v)", err)
	}
	extracts(t, packed, top)
}

// extracts holds the tree that tar makes of an archive against the one it is of.
func extracts(t *testing.T, packed []byte, top string) {
	t.Helper()
	to := t.TempDir()
	cmd := exec.Command("tar", "xzpf", "-", "-C", to)
	cmd.Stdin = bytes.NewReader(packed)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("tar: %v: %s", err, out)
	}
	if out, err := exec.Command("diff", "-r", "--no-dereference", top, filepath.Join(to, filepath.Base(top))).CombinedOutput(); err != nil {
		t.Errorf("diff: %v: %s", err, out)
	}
}

func TestAFileIsAnArchiveOfItself(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f.txt")
	must(t, os.WriteFile(path, []byte("content"), 0o640), os.Chtimes(path, born, born))
	packed, _, err := pack(t, path, loose, 7)
	must(t, err)
	want := []entry{{"f.txt", "", "content", tar.TypeReg, 0o640, born.Unix()}}
	if diff := cmp.Diff(want, entries(t, packed)); diff != "" {
		t.Error(diff)
	}
}

// TestWhatIsNoFileIsLeftOutAndNamed, and never opened: nothing waits.
func TestWhatIsNoFileIsLeftOutAndNamed(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	socket, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(socket)
	must(t,
		unix.Mkfifo(filepath.Join(top, "fifo"), 0o600),
		unix.Mknod(filepath.Join(top, "null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))),
		unix.Bind(socket, &unix.SockaddrUnix{Name: filepath.Join(top, "socket")}),
		os.WriteFile(filepath.Join(top, "x"), nil, 0o600),
	)
	packed, report, err := pack(t, top, loose, 0)
	must(t, err)
	base := filepath.Base(top)
	if got := names(entries(t, packed)); !slices.Equal(got, []string{base + "/", base + "/x"}) {
		t.Errorf("got %q", got)
	}
	if want := fmt.Sprintf("3 left out as FIFOs, sockets or devices (%q first)", base+"/fifo"); report.String() != want {
		t.Errorf("want %s, got %s", want, report)
	}
}

// TestOmit: directly below the top alone.
func TestOmit(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(top, "own", "x"), 0o700), os.MkdirAll(filepath.Join(top, "sub", "own"), 0o700))
	f, err := os.Open(top)
	must(t, err)
	defer f.Close()
	var out bytes.Buffer
	_, err = Write(t.Context(), &out, f, Options{Name: "t", Omit: func(name string) bool { return name == "own" }})
	must(t, err)
	if got := names(entries(t, out.Bytes())); !slices.Equal(got, []string{"t/", "t/sub/", "t/sub/own/"}) {
		t.Errorf("got %q", got)
	}
}

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

// onWrite calls a function when the first byte of a file, read by then, is written.
type onWrite struct {
	io.Writer
	do     func()
	writes int
}

func (w *onWrite) Write(p []byte) (int, error) {
	if w.writes++; w.writes == 2 { // the first is gzip's own
		w.do()
	}
	return w.Writer.Write(p)
}

func incompressible(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b) // never fails
	return b
}

// TestChangesMeanwhile: a file is read while its archive is written.
func TestChangesMeanwhile(t *testing.T) {
	t.Parallel()
	noise := incompressible(4 * bufferSize)
	for name, c := range map[string]struct {
		change func(path string) error
		want   error
		report string
	}{
		"nothing":   {func(string) error { return nil }, nil, ""},
		"grown":     {func(path string) error { return os.Truncate(path, 5*bufferSize) }, nil, `1 changed meanwhile, and are left out or mixed of before and after ("t/f" first)`},
		"shrunk":    {func(path string) error { return os.Truncate(path, 3*bufferSize) }, ErrShrank, ""},
		"rewritten": {func(path string) error { return os.WriteFile(path, noise, 0o600) }, nil, `1 changed meanwhile, and are left out or mixed of before and after ("t/f" first)`},
		"removed":   {os.Remove, nil, `1 changed meanwhile, and are left out or mixed of before and after ("t/f" first)`},
	} {
		top := t.TempDir()
		path := filepath.Join(top, "f")
		must(t, os.WriteFile(path, noise, 0o600), os.Chtimes(path, born, born))
		f, err := os.Open(top)
		must(t, err)
		var out bytes.Buffer
		report, err := write(t.Context(), &onWrite{Writer: &out, do: func() { must(t, c.change(path)) }}, f, Options{Name: "t", Bytes: 1 << 30}, loose)
		must(t, f.Close())
		if !errors.Is(err, c.want) || report.String() != c.report {
			t.Errorf("%s: want %v and %q, got %v and %q", name, c.want, c.report, err, report)
		}
		if err == nil {
			if got := entries(t, out.Bytes()); len(got) != 2 || len(got[1].Content) != len(noise) {
				t.Errorf("%s: %q", name, names(got))
			}
		}
	}
}

// TestASmallFileThatShrankIsAsLongAsItIs, rather than filled up.
func TestASmallFileThatShrankIsAsLongAsItIs(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	must(t, os.WriteFile(path, []byte("short"), 0o600))
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	for _, announced := range []int64{6, bufferSize, bufferSize + 1} {
		_, err := f.Seek(0, io.SeekStart)
		must(t, err)
		var st unix.Stat_t
		must(t, unix.Fstat(int(f.Fd()), &st))
		st.Size = announced
		var out bytes.Buffer
		w := &walk{ctx: t.Context(), tar: tar.NewWriter(&out), left: 1 << 30, buffer: make([]byte, bufferSize)}
		must(t, w.file(f, &st, "f"), w.tar.Close())
		r := tar.NewReader(&out)
		h, err := r.Next()
		must(t, err)
		if h.Size != 5 || w.report.changed.n != 1 {
			t.Errorf("%d bytes were announced: %d kept, report %q", announced, h.Size, w.report)
		}
	}
}

func TestWhatCantBeOpened(t *testing.T) {
	t.Parallel()
	w := &walk{}
	for _, errno := range []error{unix.EACCES, unix.EPERM, unix.ENOENT, unix.ELOOP, unix.ENOTDIR, unix.ENXIO, unix.EINVAL} {
		must(t, w.leaveOut("p", errno))
	}
	if w.report.unreadable.n != 2 || w.report.changed.n != 5 {
		t.Errorf("got %q", w.report)
	}
	for _, errno := range []error{unix.EMFILE, unix.ENOMEM, unix.EIO} {
		if err := w.leaveOut("p", errno); !errors.Is(err, errno) {
			t.Errorf("want %v to end the archive, got %v", errno, err)
		}
	}
}

// TestAnArchiveEndsWithItsContext, also within a file and a directory.
func TestAnArchiveEndsWithItsContext(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	noise := incompressible(4 * bufferSize)
	must(t, os.WriteFile(filepath.Join(top, "f"), noise, 0o600))
	f, err := os.Open(top)
	must(t, err)
	defer f.Close()
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	var out bytes.Buffer
	if _, err := Write(ctx, &onWrite{Writer: &out, do: func() { cancel(gone) }}, f, Options{Name: "t", Bytes: 1 << 30}); !errors.Is(err, context.Canceled) || out.Len() > len(noise)/2 {
		t.Errorf("after its first bytes: %d bytes, %v", out.Len(), err)
	}
	out.Reset()
	if _, err := Write(ctx, &out, f, Options{Name: "t"}); !errors.Is(err, context.Canceled) {
		t.Errorf("before: %v", err)
	}
	full := errors.New("full")
	_, err = f.Seek(0, io.SeekStart)
	must(t, err)
	if _, err := Write(t.Context(), failing{full}, f, Options{Name: "t", Bytes: 1 << 30}); !errors.Is(err, full) {
		t.Errorf("want the writer's error, got %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// TestAReportIsShortText: it comes from names that the session chose.
func TestAReportIsShortText(t *testing.T) {
	t.Parallel()
	var r Report
	for _, g := range []*group{&r.special, &r.unreadable, &r.changed} {
		for range MaxEntries {
			g.add("a/" + strings.Repeat("\xff\n\u202e", 1000))
		}
	}
	got := r.String()
	if len(got) > 1024 || strings.ContainsAny(got, "\n\u202e\ufffd") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}
