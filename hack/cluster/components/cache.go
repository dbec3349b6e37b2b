package components

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/berth-dev/berth/hack/cluster/process"
)

// CacheDir is where everything that outlives a checkout is kept: $BERTH_CACHE,
// else $XDG_CACHE_HOME/berth, else ~/.cache/berth.
func CacheDir() (string, error) {
	if dir := os.Getenv("BERTH_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder for the cache, set BERTH_CACHE to one: %w", err)
	}
	return filepath.Join(dir, "berth"), nil
}

// key names the component's folder in the cache. It changes with whatever
// changes the result: the pins, the recipe, our own source, the platform.
func (c Component) key() string {
	mod, sum := c.modFiles()
	recipe, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings, maps of strings and a bool
	}
	h := sha256.New()
	for _, part := range [][]byte{mod, sum, recipe, c.source(), []byte(runtime.GOARCH)} {
		fmt.Fprintf(h, "%d:", len(part))
		h.Write(part)
	}
	return fmt.Sprintf("%s-%s-%s", c.Name, c.Version(), hex.EncodeToString(h.Sum(nil))[:12])
}

// source is the component's own main.go, nil if all of it comes from modules.
func (c Component) source() []byte {
	data, err := pins.ReadFile(c.Name + "/main.go")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		panic(err)
	}
	return data
}

// Cache is the folder that built components are kept in. Several processes may
// use one at a time.
type Cache struct{ Dir string }

// Folder is where the component's binaries are, or will be.
func (c Cache) Folder(component Component) string {
	return filepath.Join(c.Dir, component.key())
}

// Has says whether the component is built. A folder appears under its name only
// when it's whole.
func (c Cache) Has(component Component) bool {
	info, err := os.Stat(c.Folder(component))
	return err == nil && info.IsDir()
}

// publish runs fill on an empty folder and then gives that folder its name, at
// once and whole. When others are at it, it waits for them (waiting is called
// once, before), and when they've done it, it doesn't fill.
func (c Cache) publish(name string, waiting func(), fill func(dir string) error) (err error) {
	final := filepath.Join(c.Dir, name)
	lock, err := process.Lock(filepath.Join(c.Dir, "locks", name), waiting)
	if err != nil {
		return err
	}
	defer lock.Close()
	if _, err := os.Stat(final); err == nil {
		return nil
	}
	// Whoever left this behind holds no lock any more.
	unfinished := filepath.Join(c.Dir, "unfinished", name)
	if err := os.RemoveAll(unfinished); err != nil {
		return fmt.Errorf("removing an unfinished build: %w", err)
	}
	if err := os.MkdirAll(unfinished, 0o755); err != nil {
		return fmt.Errorf("making a folder in the cache: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(unfinished)) }()
	if err := fill(unfinished); err != nil {
		return err
	}
	return os.Rename(unfinished, final)
}

// Envtest returns a folder for KUBEBUILDER_ASSETS: kube-apiserver, etcd and
// kubectl beside each other. They must be built.
func (c Cache) Envtest() (string, error) {
	list, err := Named(EnvtestNames...)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, component := range list {
		fmt.Fprintln(h, component.key())
	}
	name := "envtest-" + hex.EncodeToString(h.Sum(nil))[:12]
	return filepath.Join(c.Dir, name), c.publish(name, func() {}, func(dir string) error {
		for _, component := range list {
			// Relative, so that the cache may be moved.
			target := filepath.Join("..", component.key(), component.Name)
			if err := os.Symlink(target, filepath.Join(dir, component.Name)); err != nil {
				return err
			}
		}
		return nil
	})
}
