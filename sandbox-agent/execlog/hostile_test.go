package execlog

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// Whatever the session puts in the way: no log, a notice, nothing followed,
// nothing blocked.
func TestHostileDirectories(t *testing.T) {
	for name, prepare := range map[string]func(workspace, outside string) error{
		"link":          func(w, o string) error { return os.Symlink(o, filepath.Join(w, ".berth")) },
		"dangling link": func(w, o string) error { return os.Symlink("nowhere", filepath.Join(w, ".berth")) },
		"link inside": func(w, o string) error {
			return errors.Join(os.Mkdir(filepath.Join(w, "real"), 0o700), os.Symlink("real", filepath.Join(w, ".berth")))
		},
		"file": func(w, o string) error { return os.WriteFile(filepath.Join(w, ".berth"), []byte("x"), 0o600) },
		"FIFO": func(w, o string) error { return unix.Mkfifo(filepath.Join(w, ".berth"), 0o600) },
		"linked logs": func(w, o string) error {
			return errors.Join(os.Mkdir(filepath.Join(w, ".berth"), 0o700), os.Symlink(o, filepath.Join(w, ".berth/logs")))
		},
		"logs are a FIFO": func(w, o string) error {
			return errors.Join(os.Mkdir(filepath.Join(w, ".berth"), 0o700), unix.Mkfifo(filepath.Join(w, ".berth/logs"), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			workspace, outside := t.TempDir(), t.TempDir()
			victim := filepath.Join(outside, "0123456789abcdef.stdout")
			if err := errors.Join(prepare(workspace, outside), os.WriteFile(victim, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
			f := newFixture(t, workspace)
			l, notice := f.keep(100, "x")
			if l != nil || !strings.Contains(notice, "No log") || strings.Contains(notice, workspace) {
				t.Errorf("log %+v, notice %q", l, notice)
			}
			if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
				t.Errorf("outside: %v, %v", entries, err)
			}
			if f.used != 0 {
				t.Errorf("%d bytes are counted", f.used)
			}
		})
	}
}

// What the session put in the place of a log, or moved it to, is the session's.
func TestOnlyOwnFilesAreRemoved(t *testing.T) {
	f := newFixture(t, t.TempDir())
	replaced, _ := f.keep(100, "x")
	moved, _ := f.keep(100, "y")
	path, elsewhere := filepath.Join(f.workspace, replaced.Path), filepath.Join(f.workspace, "mine")
	err := errors.Join(os.Rename(filepath.Join(f.workspace, moved.Path), elsewhere), os.Remove(path), os.WriteFile(path, []byte("mine"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	f.clock.Advance(Lifetime)
	if got, err := os.ReadFile(path); err != nil || string(got) != "mine" {
		t.Errorf("replaced: %q, %v", got, err)
	}
	if got, err := os.ReadFile(elsewhere); err != nil || string(got) != "y" {
		t.Errorf("moved: %q, %v", got, err)
	}
}

func TestLeftOversAreRemoved(t *testing.T) {
	workspace := t.TempDir()
	logs := filepath.Join(workspace, ".berth", "logs")
	if err := os.MkdirAll(logs, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"0123456789abcdef.txt", "0123456789ABCDEF.stdout", "notes", "0123456789abcdef.stdout", "0123456789abcdef.stderr"} {
		if err := os.WriteFile(filepath.Join(logs, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 600 { // more than are listed at once
		if err := os.WriteFile(filepath.Join(logs, fmt.Sprintf("%016x.stdout", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("notes", filepath.Join(logs, "fedcba9876543210.stderr")); err != nil { // not regular
		t.Fatal(err)
	}
	f := newFixture(t, workspace)
	<-f.cleared
	want := []string{"0123456789ABCDEF.stdout", "0123456789abcdef.txt", "fedcba9876543210.stderr", "notes"}
	if diff := cmp.Diff(want, f.files(t)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

// TestDiskFull runs itself where a file system of 64 KiB can be mounted.
func TestDiskFull(t *testing.T) {
	if workspace := os.Getenv(smallDisk); workspace != "" {
		diskFull(t, workspace)
		return
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestDiskFull$")
	cmd.Env = append(os.Environ(), smallDisk+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func diskFull(t *testing.T, workspace string) {
	if err := unix.Mount("none", workspace, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, workspace)
	data := bytes.Repeat([]byte("0123456789"), 10_000)
	c := f.Command(1 << 30)
	l := c.Open(Stdout)
	l.Append(data)
	l.Append(data)
	found, notice := c.Finish()
	if !found.Stdout.Truncated || !strings.Contains(notice, "no space left") || strings.Count(notice, workspace) != 1 { // in the log's name, not in the error's
		t.Errorf("log %+v, notice %q", found.Stdout, notice)
	}
	if got := f.read(t, found.Stdout); found.Stdout.Size < 32<<10 || got != string(data[:found.Stdout.Size]) || f.used != found.Stdout.Size {
		t.Errorf("%d bytes, %d are counted, %d were read", found.Stdout.Size, f.used, len(got))
	}
	c = f.Command(1 << 30)
	c.Open(Stderr).Append(data)
	if found, notice := c.Finish(); found != nil || !strings.Contains(notice, "no space left") || len(f.files(t)) != 1 {
		t.Errorf("without a byte of room: %+v, notice %q, files %v", found, notice, f.files(t))
	}
}
