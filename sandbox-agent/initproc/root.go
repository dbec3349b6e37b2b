package initproc

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// own are the directories of the root directory that a session on a machine
// without a cluster has to itself, as one in a pod does.
var own = []string{"workspace", "tmp"}

// rootOptions are those of the new root, which holds little more than the names
// of what is mounted in it.
const rootOptions = "mode=0755,size=16m"

// Root gives this process, which must have been started isolated, a root directory
// of its own: everything of the machine's, but /workspace and /tmp are those of
// dir. Nothing on the machine changes but that dir/root is made. dir must exist,
// with both; paths below its own are no longer to be found if it is in /tmp.
func Root(dir string) error {
	root := filepath.Join(dir, "root")
	if err := os.Mkdir(root, 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	if err := unix.Mount("root", root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, rootOptions); err != nil {
		return fmt.Errorf("mount a root directory at %s: %w: %s", root, err, advice)
	}
	entries, err := os.ReadDir("/")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if slices.Contains(own, entry.Name()) {
			continue
		}
		if err := show(filepath.Join("/", entry.Name()), filepath.Join(root, entry.Name()), entry.Type()); err != nil {
			return err
		}
	}
	for _, name := range own {
		if err := show(filepath.Join(dir, name), filepath.Join(root, name), fs.ModeDir); err != nil {
			return err
		}
	}
	if err := pivot(root); err != nil {
		return err
	}
	return dropAmbient()
}

// show makes what is at from be at to, which is not there, too. Sockets, FIFOs and
// devices in the root directory itself are left out.
func show(from, to string, kind fs.FileMode) error {
	var err error
	switch {
	case kind&fs.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	case kind.IsDir():
		err = os.Mkdir(to, 0o755)
	case kind.IsRegular():
		err = os.WriteFile(to, nil, 0o644)
	default:
		return nil
	}
	if err != nil {
		return err
	}
	// With all that is mounted below: a user namespace may not show what that hides.
	if err := unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mount %s at %s: %w", from, to, err)
	}
	return nil
}

// dropAmbient takes from what is started from now on the capabilities that mounting
// needed. A program that is linked with cgo can't; then they stay.
func dropAmbient() error {
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0)
	if errno != 0 && errno != syscall.ENOTSUP {
		return fmt.Errorf("drop capabilities: %w", errno)
	}
	return nil
}

// pivot makes root the root directory, and the old one unreachable.
func pivot(root string) error {
	if err := unix.Chdir(root); err != nil {
		return fmt.Errorf("enter %s: %w", root, err)
	}
	// See NOTES of pivot_root(2): the old root is mounted over the new one.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change the root directory: %w: %s", err, advice)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the old root directory: %w", err)
	}
	return unix.Chdir("/")
}
