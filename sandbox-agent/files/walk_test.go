package files

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// text reads a file whole.
func text(r *Reach, path string) (string, error) {
	f, err := r.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	return string(b), err
}

func TestOpenFollowsWhatStaysInside(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	r, dir := fixture(t, root)
	file(t, dir, "d/e/f", "in the workspace", 0o644)
	file(t, dir, "..name", "two dots", 0o644)
	file(t, dir, "new\nline\u202e", "odd", 0o644)
	file(t, root, "f", "in the root", 0o644)
	symlink(t, dir, "d/e/f", "file")
	symlink(t, dir, "d/e", "directory")
	symlink(t, dir, "../f", "d/e/up") // d/f, which isn't there
	symlink(t, dir, "../../file", "d/e/back")
	symlink(t, dir, filepath.Join(dir, "d"), "absolute")
	symlink(t, dir, dir, "self")
	symlink(t, dir, ".", "here")
	symlink(t, dir, filepath.Join(root, "f"), "into the root")
	up, err := filepath.Rel(dir, root)
	if err != nil {
		t.Fatal(err)
	}
	symlink(t, dir, filepath.Join(up, "f"), "up and into the root")
	symlink(t, root, dir, "workspace")
	symlink(t, dir, "file", "chain0")
	for i := range 38 { // forty links, with file and chain0
		symlink(t, dir, "chain"+string(rune('0'+i)), "chain"+string(rune('1'+i)))
	}
	for path, want := range map[string]string{
		"d/e/f":                               "in the workspace",
		"./d//e/../e/f":                       "in the workspace",
		filepath.Join(dir, "d/e/f"):           "in the workspace",
		"file":                                "in the workspace",
		"directory/f":                         "in the workspace",
		"d/e/back":                            "in the workspace",
		"absolute/e/f":                        "in the workspace",
		"self/self/here/d/e/f":                "in the workspace",
		"..name":                              "two dots",
		"new\nline\u202e":                     "odd",
		"into the root":                       "in the root",
		"up and into the root":                "in the root",
		filepath.Join(root, "f"):              "in the root",
		filepath.Join(root, "workspace/file"): "in the workspace",
		filepath.Join(root, "..", filepath.Base(root), "f"): "in the root",
		"chain" + string(rune('0'+38)):                      "in the workspace",
	} {
		if got, err := text(r, path); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", path, got, err, want)
		}
	}
}

func TestOpenIsRefused(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	r, dir := fixture(t, root)
	outside := t.TempDir()
	file(t, outside, "secret", "x", 0o644)
	file(t, dir, "main.go", "x", 0o644)
	file(t, dir, "d/f", "x", 0o644)
	special(t, dir, "fifo", unix.S_IFIFO)
	special(t, dir, "socket", unix.S_IFSOCK)
	symlink(t, dir, "fifo", "to a fifo")
	symlink(t, dir, "/dev/zero", "to a device")
	symlink(t, dir, filepath.Join(outside, "secret"), "out")
	symlink(t, dir, outside, "out directory")
	symlink(t, dir, "..", "up")
	symlink(t, dir, "../"+filepath.Base(outside), "beside")
	symlink(t, dir, "loop", "loop")
	symlink(t, dir, "pool", "loop2")
	symlink(t, dir, "loop2", "pool")
	symlink(t, dir, "nothing/x", "dangling")
	symlink(t, dir, "/proc/self/cwd/main.go", "magic")
	symlink(t, dir, strings.Repeat("d/../", 800)+"self", "self")
	deep := strings.Repeat("d/", wire.MaxPath/2)
	for path, c := range map[string]struct {
		kind error
		want string
	}{
		"":                               {ErrRequest, "the path is empty"},
		"a\x00b":                         {ErrRequest, "NUL"},
		strings.Repeat("a", 256):         {ErrRequest, "too long"},
		strings.Repeat("a", 4096):        {ErrRequest, "too long"},
		strings.Repeat("a", 4097):        {ErrRequest, "longer than 4096 bytes"},
		deep:                             {ErrNotFound, "there is no directory"},
		"../x":                           {ErrOutside, "the path leads outside"},
		"d/../../x":                      {ErrOutside, "the path leads outside"},
		"/etc/passwd":                    {ErrOutside, "the path leads outside"},
		dir + "x/f":                      {ErrOutside, "the path leads outside"},
		root + "x":                       {ErrOutside, "the path leads outside"},
		"out":                            {ErrOutside, `the link "out" leads outside`},
		"out directory/secret":           {ErrOutside, `the link "out directory" leads outside`},
		"up/x":                           {ErrOutside, "a link leads outside"},
		"up":                             {ErrOutside, "a link leads outside"},
		"beside/secret":                  {ErrOutside, "a link leads outside"},
		"magic":                          {ErrOutside, `the link "magic" leads outside`},
		"to a device":                    {ErrOutside, `the link "to a device" leads outside`},
		"loop":                           {ErrNotFound, `"loop" leads through too many links`},
		"pool/x":                         {ErrNotFound, "too many links"},
		"self":                           {ErrNotFound, "too many links"},
		"dangling":                       {ErrNotFound, `there is no directory "nothing"`},
		"mian.go":                        {ErrNotFound, `there is no file "mian.go"; there is "main.go"`},
		"d/g":                            {ErrNotFound, `there is no file "d/g"; there is "f"`},
		"e/f":                            {ErrNotFound, `there is no directory "e"; there is "d"`},
		"main.go/x":                      {ErrNotDirectory, `"main.go" is not a directory`},
		"main.go/..\n":                   {ErrNotDirectory, `"main.go" is not a directory`},
		"d":                              {ErrNotRegular, `"d" is a directory: list it`},
		".":                              {ErrNotRegular, `"." is a directory: list it`},
		dir:                              {ErrNotRegular, `"." is a directory: list it`},
		root:                             {ErrNotRegular, `is a directory: list it`},
		"fifo":                           {ErrNotRegular, `"fifo" is no regular file, but a fifo`},
		"to a fifo":                      {ErrNotRegular, `"fifo" is no regular file, but a fifo`},
		"socket":                         {ErrNotRegular, `"socket" is no regular file, but a socket`},
		filepath.Join(root, "nothing"):   {ErrNotFound, "there is no file"},
		"ab\x1b[31m\u202e" + string('x'): {ErrNotFound, `there is no file "ab\x1b[31m\u202ex"`},
	} {
		_, err := r.Open(path)
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80q: %v, want %s", path, err, c.want)
			continue
		}
		if strings.Contains(err.Error(), dir) || strings.Contains(err.Error(), outside) {
			t.Errorf("%.80q: %v names an absolute path", path, err)
		}
	}
}

func TestOpenRefusesADevice(t *testing.T) {
	t.Parallel()
	r, _ := fixture(t, "/dev")
	if _, err := r.Open("/dev/zero"); !errors.Is(err, ErrNotRegular) || !strings.Contains(err.Error(), `"/dev/zero" is no regular file, but a device`) {
		t.Error(err)
	}
	if _, _, err := r.Write("/dev/null", strings.NewReader("x"), 0); !errors.Is(err, ErrNotRegular) {
		t.Error(err)
	}
}

// With the whole file system as a root, no magic link is followed all the same:
// its text is.
func TestNoMagicLinkIsFollowed(t *testing.T) {
	t.Parallel()
	r, dir := fixture(t, "/")
	file(t, dir, "f", "x", 0o644)
	f, err := os.Open(filepath.Join(dir, "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Remove(f.Name()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Open("/proc/self/fd/" + strconv.Itoa(int(f.Fd()))); !errors.Is(err, ErrNotFound) {
		t.Errorf("%v, want that %q is not found", err, "f (deleted)")
	}
}

func TestARootThatIsMissing(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "root")
	r, _ := fixture(t, root)
	if _, err := r.Open(filepath.Join(root, "f")); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

// A root that commands made a link to /proc shows nothing of the agent, whose process
// /proc/self is; nor does one that is in it.
func TestARootThatLeadsToTheAgentsOwnProcess(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	root := filepath.Join(parent, "root")
	r, _ := fixture(t, root, "/proc/self")
	for _, to := range []string{"/proc/self", "/proc", "/proc/self/task", "/proc/thread-self/../.."} {
		if err := os.RemoveAll(root); err != nil {
			t.Fatal(err)
		}
		symlink(t, parent, to, "root")
		for _, path := range []string{root, root + "/environ", root + "/self/maps", root + "/cwd/walk.go"} {
			if got, err := text(r, path); !errors.Is(err, ErrOutside) {
				t.Errorf("%s of a link to %s: %.40q, %v", path, to, got, err)
			}
			if _, err := r.List(t.Context(), path, Listing{Limit: 1}); !errors.Is(err, ErrOutside) {
				t.Errorf("list of %s of a link to %s: %v", path, to, err)
			}
		}
	}
	if got, err := text(r, "/proc/self/environ"); !errors.Is(err, ErrOutside) {
		t.Errorf("a root that is there: %.40q, %v", got, err)
	}
	symlink(t, parent, parent, "there")
	file(t, parent, "f", "inside", 0o644)
	elsewhere := &Reach{store: r.store, roots: []string{filepath.Join(parent, "there")}}
	if got, err := text(elsewhere, filepath.Join(parent, "there", "f")); err != nil || got != "inside" {
		t.Errorf("a link that leads elsewhere: %q, %v", got, err)
	}
}

// A root in the workspace, or in another root, is where commands may put a link.
func TestARootInAnotherBaseIsFollowedAsTheRestOfIt(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	r, dir := fixture(t, filepath.Join(parent, "root", "in"), filepath.Join(parent, "root"))
	inWorkspace := &Reach{store: r.store, roots: []string{filepath.Join(dir, "in")}}
	file(t, parent, "secret", "outside", 0o644)
	for _, base := range []struct {
		reach *Reach
		dir   string
	}{{r, filepath.Join(parent, "root")}, {inWorkspace, dir}} {
		file(t, base.dir, "in/f", "inside", 0o644)
		path := filepath.Join(base.dir, "in", "f")
		if got, err := text(base.reach, path); err != nil || got != "inside" {
			t.Errorf("%s: %q, %v", path, got, err)
		}
		if err := os.RemoveAll(filepath.Join(base.dir, "in")); err != nil {
			t.Fatal(err)
		}
		symlink(t, base.dir, parent, "in")
		path = filepath.Join(base.dir, "in", "secret")
		if got, err := text(base.reach, path); !errors.Is(err, ErrOutside) {
			t.Errorf("%s, in a link: %q, %v", path, got, err)
		}
	}
}

// What a process holds a lease on would have to be waited for.
func TestALeasedFileIsRefused(t *testing.T) {
	t.Parallel()
	r, dir := fixture(t)
	file(t, dir, "f", "leased", 0o644)
	f, err := os.OpenFile(filepath.Join(dir, "f"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	signal.Ignore(unix.SIGIO) // that another wants it
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Fatal(err)
	}
	if got, err := text(r, "f"); !errors.Is(err, ErrChanged) {
		t.Errorf("%q, %v", got, err)
	}
}

// A directory that is swapped for a link while it is walked leads nowhere else.
func TestSwappedDirectory(t *testing.T) {
	t.Parallel()
	r, dir := fixture(t)
	outside := t.TempDir()
	file(t, outside, "f", "secret", 0o644)
	file(t, dir, "d/f", "inside", 0o644)
	symlink(t, dir, outside, "link")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, "d"), unix.AT_FDCWD, filepath.Join(dir, "link"), unix.RENAME_EXCHANGE)
			}
		}
	}()
	read := 0
	for range 3000 {
		got, err := text(r, "d/f")
		if err == nil && got != "inside" {
			t.Errorf("read %q", got)
		}
		if err == nil {
			read++
		}
		if _, _, err := r.Write("d/g", strings.NewReader("x"), 0); err != nil && !errors.Is(err, ErrOutside) && !errors.Is(err, ErrNotDirectory) && !errors.Is(err, ErrNotFound) {
			t.Error(err)
		}
	}
	close(stop)
	<-stopped
	if read == 0 || read == 3000 {
		t.Logf("%d of 3000 reads found it: no race was seen", read)
	}
	wantNames(t, outside, "f")
}

// Any path is refused, or leads to what the kernel finds there.
func FuzzPath(f *testing.F) {
	r, dir := fixture(f)
	file(f, dir, "a/b/c", "x", 0o644)
	file(f, dir, "..c", "x", 0o644)
	symlink(f, dir, "a/b", "l")
	symlink(f, dir, "../l/../..", "a/l")
	symlink(f, dir, dir, "self")
	symlink(f, dir, "../..", "out")
	for _, path := range []string{"a/b/c", "l/c", "a/l/c", "self/l/../..c", "out/x", "../..", "/", dir + "/a", "a/./b//c/", "\x00"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		p, err := r.walk(path, false)
		if err != nil {
			return
		}
		defer p.close()
		if !p.exists {
			return
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		real, err := filepath.EvalSymlinks(filepath.Clean(path))
		if err != nil || !within(dir, real) {
			t.Fatalf("%q: is at %q, %v", path, real, err)
		}
		var is unix.Stat_t
		if err := unix.Lstat(real, &is); err != nil || is.Ino != p.is.Ino {
			t.Errorf("%q: found inode %d, want %d, %v", path, p.is.Ino, is.Ino, err)
		}
	})
}

func TestClosedStore(t *testing.T) {
	t.Parallel()
	s, err := NewStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Within(nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Refuse()
	if _, err := s.Within(nil); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	if _, _, err := r.Write("f", strings.NewReader("x"), 0); err != nil { // it is under way
		t.Error(err)
	}
	r.Done()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if _, err := NewStore(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("a workspace that is missing is served")
	}
}
