package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
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
