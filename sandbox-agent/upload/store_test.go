package upload

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/filename"
)

// fixture is a store of an empty workspace, and where it writes to.
func fixture(t testing.TB) (s *Store, dir string) {
	t.Helper()
	workspace := t.TempDir()
	s, err := NewStore(workspace, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, filepath.Join(workspace, Directory)
}

func list(t testing.TB, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// save uploads and returns the name that the file got.
func save(t testing.TB, s *Store, name, data string) string {
	t.Helper()
	f, received, err := s.Save(name, strings.NewReader(data), 0)
	if err != nil || f.Size != int64(len(data)) || received != f.Size || f.Path != filepath.Join(s.path, f.Name) {
		t.Fatalf("Save(%q) = %+v, %d, %v", name, f, received, err)
	}
	if got, err := os.ReadFile(f.Path); err != nil || string(got) != data {
		t.Fatalf("%s holds %q, %v", f.Path, got, err)
	}
	return f.Name
}

// refused wants an upload to fail and to leave nothing more than left.
func refused(t testing.TB, s *Store, dir string, body io.Reader, limit int64, want error, left ...string) (received int64) {
	t.Helper()
	f, received, err := s.Save("a.txt", body, limit)
	if !errors.Is(err, want) || f.Name != "" {
		t.Errorf("Save = %+v, %v, want %v", f, err, want)
	}
	if got := list(t, dir); !slices.Equal(got, left) {
		t.Errorf("%q is left, want %q", got, left)
	}
	return received
}

// withoutLinks is a file system that refuses hard links.
func withoutLinks(err error) func(*os.File, string, string) error {
	return func(*os.File, string, string) error { return err }
}

func TestSaveNeverOverwritesOnBothPaths(t *testing.T) {
	t.Parallel()
	for name, refuses := range map[string]error{
		"link": nil, "EPERM": unix.EPERM, "EOPNOTSUPP": unix.EOPNOTSUPP, "ENOSYS": unix.ENOSYS, "EMLINK": unix.EMLINK, "EXDEV": unix.EXDEV, "EACCES": unix.EACCES, "EINVAL": unix.EINVAL,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, dir := fixture(t)
			if refuses != nil {
				s.link = withoutLinks(refuses)
			}
			for i, want := range []string{"a.tar.gz", "a_2.tar.gz", "a_3.tar.gz"} {
				if got := save(t, s, "a.tar.gz", fmt.Sprint("content ", i)); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			}
			if err := os.Symlink("/nowhere", filepath.Join(dir, "link")); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(filepath.Join(dir, "directory"), 0o700); err != nil {
				t.Fatal(err)
			}
			if got := save(t, s, "link", ""); got != "link_2" {
				t.Errorf("a dangling link is in the way: got %s", got)
			}
			if got := save(t, s, "directory", "x"); got != "directory_2" {
				t.Errorf("a directory is in the way: got %s", got)
			}
			want := []string{"a.tar.gz", "a_2.tar.gz", "a_3.tar.gz", "directory", "directory_2", "link", "link_2"}
			if got := list(t, dir); !slices.Equal(got, want) {
				t.Errorf("%q are there, want %q: no temporary", got, want)
			}
			if got, err := os.ReadFile(filepath.Join(dir, "a.tar.gz")); err != nil || string(got) != "content 0" {
				t.Errorf("the first file holds %q, %v", got, err)
			}
		})
	}
}

func TestSaveTries1000Names(t *testing.T) {
	t.Parallel()
	for name, fallback := range map[string]bool{"link": false, "fallback": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, dir := fixture(t)
			if fallback {
				s.link = withoutLinks(unix.EPERM)
			}
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			for n := range tries - 1 {
				if err := os.WriteFile(filepath.Join(dir, numbered("a.txt", n+1)), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := save(t, s, "a.txt", "the last"); got != "a_1000.txt" {
				t.Errorf("got %s, want a_1000.txt", got)
			}
			refused(t, s, dir, strings.NewReader("one more"), 0, ErrTaken, list(t, dir)...)
		})
	}
}

func TestConcurrentSavesOfOneNameAreAllKept(t *testing.T) {
	t.Parallel()
	for name, fallback := range map[string]bool{"link": false, "fallback": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, dir := fixture(t)
			if fallback {
				s.link = withoutLinks(unix.EPERM)
			}
			const n = 50
			var all sync.WaitGroup
			for i := range n {
				all.Go(func() { save(t, s, "a.txt", fmt.Sprint(i)) })
			}
			all.Wait()
			contents := map[string]bool{}
			for _, name := range list(t, dir) {
				data, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil {
					t.Fatal(err)
				}
				contents[string(data)] = true
			}
			if len(contents) != n || len(list(t, dir)) != n {
				t.Errorf("%d contents in %d files, want %d", len(contents), len(list(t, dir)), n)
			}
		})
	}
}

func TestLimit(t *testing.T) {
	t.Parallel()
	const limit = 300_000 // several buffers
	s, dir := fixture(t)
	for _, size := range []int{limit - 1, limit} {
		f, _, err := s.Save("a", bytes.NewReader(make([]byte, size)), limit)
		if err != nil || f.Size != int64(size) {
			t.Errorf("%d bytes: %+v, %v", size, f, err)
		}
	}
	left := list(t, dir)
	if got := refused(t, s, dir, bytes.NewReader(make([]byte, limit+1)), limit, ErrTooLarge, left...); got != limit+1 {
		t.Errorf("%d bytes were received", got)
	}
	// It is refused at the byte that exceeds, not at the end.
	endless := io.MultiReader(bytes.NewReader(make([]byte, limit+1)), iotest.ErrReader(errors.New("read on")))
	refused(t, s, dir, iotest.OneByteReader(endless), limit, ErrTooLarge, left...)
}

func TestBrokenBodyLeavesNothing(t *testing.T) {
	t.Parallel()
	s, dir := fixture(t)
	broken := io.MultiReader(strings.NewReader("half"), iotest.ErrReader(io.ErrUnexpectedEOF))
	f, received, err := s.Save("a.txt", broken, 0)
	if !errors.Is(err, ErrBody) || !errors.Is(err, io.ErrUnexpectedEOF) || received != 4 || f.Name != "" {
		t.Errorf("Save = %+v, %d, %v, want ErrBody after 4 bytes", f, received, err)
	}
	refused(t, s, dir, io.MultiReader(strings.NewReader("half"), iotest.ErrReader(ErrStalled)), 0, ErrStalled)
}

// looking is a body that looks around while it is read.
type looking struct {
	io.Reader
	look func()
}

func (l *looking) Read(p []byte) (int, error) {
	l.look()
	return l.Reader.Read(p)
}

func TestHalfAFileIsHidden(t *testing.T) {
	t.Parallel()
	s, dir := fixture(t)
	seen := 0
	body := &looking{strings.NewReader("whole"), func() {
		names := list(t, dir)
		if len(names) != 1 || !strings.HasPrefix(names[0], ".a.txt.upload-") || !filename.IsTemporary(names[0]) {
			t.Errorf("%q is there during the upload", names)
		}
		seen++
	}}
	if f, _, err := s.Save("a.txt", body, 0); err != nil || seen == 0 {
		t.Errorf("Save = %+v, %v after %d looks", f, err, seen)
	}
	if got := list(t, dir); !slices.Equal(got, []string{"a.txt"}) {
		t.Errorf("%q is there", got)
	}
}

func TestLongestNameFits(t *testing.T) {
	t.Parallel()
	s, dir := fixture(t)
	name := strings.Repeat("é", 125) + ".txt" // 254 bytes
	save(t, s, name, "x")
	if got, want := save(t, s, name, "y"), strings.Repeat("é", 124)+"_2.txt"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if len(list(t, dir)) != 2 {
		t.Errorf("%q are there", list(t, dir))
	}
}

func TestNoLinkIsFollowed(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	for name, lay := range map[string]func(dir string) error{
		"link to a directory": func(dir string) error { return os.Symlink(outside, dir) },
		"link to nothing":     func(dir string) error { return os.Symlink(filepath.Join(outside, "none"), dir) },
		"link inside":         func(dir string) error { return os.Symlink(".", dir) },
		"file":                func(dir string) error { return os.WriteFile(dir, nil, 0o600) },
		"FIFO":                func(dir string) error { return unix.Mkfifo(dir, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, dir := fixture(t)
			if err := lay(dir); err != nil {
				t.Fatal(err)
			}
			unread := iotest.ErrReader(errors.New("the body was read"))
			if f, _, err := s.Save("a.txt", unread, 0); !errors.Is(err, ErrDirectory) {
				t.Errorf("Save = %+v, %v, want ErrDirectory", f, err)
			}
			if got := list(t, outside); len(got) != 0 {
				t.Errorf("%q was made on the other side", got)
			}
		})
	}
}

func TestStaleTemporariesAreSwept(t *testing.T) {
	t.Parallel()
	s, dir := fixture(t)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	s.now = func() time.Time { return now }
	const digits = "0123456789abcdef"
	lay := func(name string, age time.Duration) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now, now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	lay(".old.upload-"+digits, time.Hour+time.Second)
	lay(".old.write-"+digits, time.Hour+time.Second) // of package files
	lay(".hour.upload-"+digits, time.Hour)
	lay(".young.upload-"+digits, time.Hour-time.Second)
	lay("visible.upload-"+digits, 2*time.Hour)
	lay(".digits.upload-0123456789abcde", 2*time.Hour)
	lay(".digits.upload-0123456789ABCDEF", 2*time.Hour)
	lay(".upload-"+digits, 2*time.Hour)
	lay(".txt", 2*time.Hour)
	old := unix.NsecToTimespec(now.Add(-2 * time.Hour).UnixNano())
	if err := os.Mkdir(filepath.Join(dir, ".directory.upload-"+digits), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("txt", filepath.Join(dir, ".link.upload-"+digits)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".directory.upload-" + digits, ".link.upload-" + digits} {
		if err := unix.UtimesNanoAt(unix.AT_FDCWD, filepath.Join(dir, name), []unix.Timespec{old, old}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			t.Fatal(err)
		}
	}
	want := slices.DeleteFunc(list(t, dir), func(name string) bool { return strings.HasPrefix(name, ".old.") })
	want = append(want, "a")
	slices.Sort(want)
	save(t, s, "a", "")
	if got := list(t, dir); !slices.Equal(got, want) {
		t.Errorf("left:\n%q, want\n%q", got, want)
	}
	// The next search is ten minutes later.
	lay(".old.upload-"+digits, 2*time.Hour)
	now = now.Add(sweepEvery - 1)
	save(t, s, "b", "")
	if got := list(t, dir); !slices.Contains(got, ".old.upload-"+digits) {
		t.Error("the directory was searched twice within ten minutes")
	}
	now = now.Add(1)
	save(t, s, "c", "")
	if got := list(t, dir); slices.Contains(got, ".old.upload-"+digits) {
		t.Error("the directory was not searched after ten minutes")
	}
}

func TestErrorsOfTheFileSystem(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]error{
		unix.ENOSPC: ErrNoSpace, unix.EDQUOT: ErrNoSpace, unix.EFBIG: ErrTooLarge, unix.EACCES: ErrForbidden,
		unix.EPERM: ErrForbidden, unix.EROFS: ErrForbidden, unix.ENAMETOOLONG: ErrName, unix.EIO: unix.EIO,
	} {
		s, dir := fixture(t)
		s.link = withoutLinks(fmt.Errorf("link: %w", err))
		if got := refusal(&os.PathError{Err: err}); !errors.Is(got, want) {
			t.Errorf("%v became %v, want %v", err, got, want)
		}
		if linksRefused(err) {
			continue // the other path is taken
		}
		refused(t, s, dir, strings.NewReader("x"), 0, want)
	}
}

func TestClosedStoreRefuses(t *testing.T) {
	t.Parallel()
	s, dir := fixture(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	refused(t, s, dir, strings.NewReader("x"), 0, ErrClosed)
}

func TestCloseWaitsForWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	s, dir := fixture(t)
	body, sender := io.Pipe()
	saved := make(chan error)
	go func() {
		_, _, err := s.Save("a", body, 0)
		saved <- err
	}()
	if _, err := sender.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	s.Refuse()
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	sender.CloseWithError(io.ErrUnexpectedEOF)
	if err := <-saved; err == nil {
		t.Error("half a file was taken")
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if got := list(t, dir); len(got) != 0 {
		t.Errorf("%q is left", got)
	}
}
