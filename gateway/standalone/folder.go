package standalone

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
)

const (
	folderPrefix = "berth-standalone-"
	lockName     = "lock"
	// folderTries is how often a folder is made anew that another gateway took for
	// one that was left behind.
	folderTries = 10
	// maxSocketPath is what the kernel takes for the path of a socket, in bytes.
	maxSocketPath = 107
)

// folder holds the sessions' folders. It is locked for as long as its gateway
// runs: one that isn't was left behind.
type folder struct {
	path string
	lock *os.File
	made atomic.Int64
}

// makeFolder makes one in the directory of temporary files, and removes those there
// that were left behind.
func makeFolder(log *slog.Logger) (*folder, error) {
	removeLeftovers(os.TempDir(), log)
	for range folderTries {
		path, err := os.MkdirTemp("", folderPrefix)
		if err != nil {
			return nil, fmt.Errorf("make a temporary folder: %w", err)
		}
		if longest := filepath.Join(path, "1000000", "agent.sock"); len(longest) > maxSocketPath {
			return nil, errors.Join(fmt.Errorf("%s is too long for the path of a socket: set TMPDIR to a shorter one", longest), os.Remove(path))
		}
		file, ok, err := lockIn(path)
		if err != nil {
			return nil, errors.Join(err, remove(path))
		}
		if ok {
			return &folder{path: path, lock: file}, nil
		}
	}
	return nil, errors.New("make a temporary folder: others removed each: is there another berth-gateway that starts again and again?")
}

// lockIn locks a new folder. It is false when another gateway was faster, which
// then removes the folder.
func lockIn(path string) (file *os.File, ok bool, err error) {
	name := filepath.Join(path, lockName)
	file, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if lock(file) {
		// The name may be gone since: then nobody would find the lock.
		if _, err := os.Lstat(name); err == nil {
			return file, true, nil
		}
	}
	return nil, false, file.Close()
}

// add makes the folder of a session.
func (f *folder) add() (string, error) {
	dir := filepath.Join(f.path, strconv.FormatInt(f.made.Add(1), 10))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	if err := os.Mkdir(filepath.Join(dir, "workspace"), 0o755); err != nil {
		return "", err
	}
	temporary := filepath.Join(dir, "tmp")
	if err := os.Mkdir(temporary, 0o700); err != nil {
		return "", err
	}
	return dir, os.Chmod(temporary, fs.ModeSticky|0o777)
}

// close removes the folder, and only then unlocks it.
func (f *folder) close() error { return errors.Join(remove(f.path), f.lock.Close()) }

// removeLeftovers removes the folders in dir that nobody locks any more. Those of
// other users, and what only has such a name, are left alone.
func removeLeftovers(dir string, log *slog.Logger) {
	paths, err := filepath.Glob(filepath.Join(dir, folderPrefix+"*"))
	if err != nil {
		log.Warn("Folders that killed gateways left behind could not be looked for", "error", err)
		return
	}
	for _, path := range paths {
		if err := removeLeftover(path); err != nil {
			log.Warn("Folder of a gateway that was killed could not be removed", "path", path, "error", err)
		}
	}
}

func removeLeftover(path string) error {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() || !mine(info) {
		return nil // not there any more, or nobody's who could tell
	}
	file, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		// Its gateway was killed before it locked it, or is about to: then it finds no
		// folder, and makes another.
		if err := os.Remove(path); err != nil && !isNotEmpty(path) {
			return err
		}
		return nil
	}
	if err != nil {
		return err
	}
	if !lock(file) {
		return file.Close() // in use
	}
	return errors.Join(remove(path), file.Close())
}

// isNotEmpty tells whether there is something in a directory.
func isNotEmpty(path string) bool {
	entries, err := os.ReadDir(path)
	return err == nil && len(entries) > 0
}

// remove removes a directory, and in it also what is in directories that can't be
// written to, as caches make them.
func remove(path string) error {
	err := os.RemoveAll(path)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	err = filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && err == nil {
			return os.Chmod(name, 0o700)
		}
		return err
	})
	return errors.Join(err, os.RemoveAll(path))
}
