// Package debian makes roots of Debian packages with mmdebstrap, as a Dockerfile
// makes them with apt-get, and caches them: a root takes up to a minute.
package debian

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/berth-dev/berth/hack/image/catalog"
)

//go:embed *.sh
var scripts embed.FS

// sources are where the packages come from: those of the image debian:bookworm-slim.
const sources = `deb http://deb.debian.org/debian bookworm main
deb http://deb.debian.org/debian bookworm-updates main
deb http://deb.debian.org/debian-security bookworm-security main
`

// slim is what the image debian:bookworm-slim never installs, in dpkg's words.
var slim = []string{
	"path-exclude /usr/share/doc/*",
	"path-include /usr/share/doc/*/copyright",
	"path-exclude /usr/share/groff/*",
	"path-exclude /usr/share/info/*",
	"path-exclude /usr/share/lintian/*",
	"path-exclude /usr/share/linda/*",
	"path-exclude /usr/share/locale/*",
	"path-exclude /usr/share/man/*",
}

// Builder makes roots below Cache.
type Builder struct {
	Cache string
	// Epoch is the latest time that a file of a root may carry.
	Epoch time.Time
	// Refresh takes today's packages in place of a cached root.
	Refresh bool
	// Log gets what the tools say while they work.
	Log io.Writer
}

// Tree is a root as a tar, and the SHA-256 of that tar in hexadecimal.
type Tree struct {
	Tar    string
	Digest string
}

// Root returns the root, from the cache when one was made by the same recipe.
func (b Builder) Root(ctx context.Context, root catalog.Root) (Tree, error) {
	script, err := scripts.ReadFile(root.Script)
	if err != nil {
		return Tree{}, fmt.Errorf("reading the script of %s: %w", root.Stage, err)
	}
	key, err := b.recipe(root, script)
	if err != nil {
		return Tree{}, err
	}
	dir := filepath.Join(b.Cache, "debian")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Tree{}, fmt.Errorf("making the cache of Debian roots: %w", err)
	}
	// Two builds at once must not both spend the minute.
	unlock, err := lock(filepath.Join(dir, root.Stage+".lock"))
	if err != nil {
		return Tree{}, err
	}
	defer unlock()

	entry := filepath.Join(dir, root.Stage+"-"+key[:16])
	if !b.Refresh {
		tree, err := cached(entry)
		if !errors.Is(err, fs.ErrNotExist) {
			return tree, err
		}
	}
	made, err := b.make(ctx, dir, root, script)
	if err != nil {
		return Tree{}, fmt.Errorf("making the Debian root %s: %w", root.Stage, err)
	}
	if err := errors.Join(os.RemoveAll(entry), os.Rename(made, entry)); err != nil {
		return Tree{}, errors.Join(fmt.Errorf("caching the Debian root %s: %w", root.Stage, err), os.RemoveAll(made))
	}
	return cached(entry)
}

// recipe is a hash of all that decides what a root holds, but for the state of
// Debian's archive.
func (b Builder) recipe(root catalog.Root, script []byte) (string, error) {
	data, err := json.Marshal([]any{root, string(script), sources, slim, b.Epoch.Unix(), runtime.GOARCH})
	if err != nil {
		return "", fmt.Errorf("hashing the recipe of %s: %w", root.Stage, err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

func cached(entry string) (Tree, error) {
	digest, err := os.ReadFile(filepath.Join(entry, "digest"))
	if err != nil {
		return Tree{}, fmt.Errorf("looking up a cached Debian root: %w", err)
	}
	return Tree{Tar: filepath.Join(entry, "root.tar"), Digest: string(digest)}, nil
}

// make runs mmdebstrap and returns a new directory below dir with root.tar and digest.
func (b Builder) make(ctx context.Context, dir string, root catalog.Root, script []byte) (made string, err error) {
	if err := ensureTools(ctx, b.Log); err != nil {
		return "", err
	}
	made, err = os.MkdirTemp(dir, ".new-")
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(made))
		}
	}()
	// Not in the cache: mmdebstrap's hook may be another user, who can't look into a home.
	scratch, err := os.MkdirTemp("", "berth-image-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	hook := filepath.Join(scratch, root.Script)
	if err := errors.Join(os.Chmod(scratch, 0o755), os.WriteFile(hook, script, 0o644)); err != nil {
		return "", err
	}

	tar, err := os.Create(filepath.Join(made, "root.tar"))
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	cmd := exec.CommandContext(ctx, "mmdebstrap", mmdebstrapArgs(root, hook)...)
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH="+strconv.FormatInt(b.Epoch.Unix(), 10), "LC_ALL=C.UTF-8")
	// Terminated, mmdebstrap takes its mounts and its temporary root away.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Stdin = strings.NewReader(sources)
	cmd.Stdout = io.MultiWriter(tar, sum)
	var said bytes.Buffer
	cmd.Stderr = &said
	fmt.Fprintf(b.Log, "Making the Debian root %s (%s)\n", root.Stage, strings.Join(root.Packages, " "))
	runErr := cmd.Run()
	if err := errors.Join(runErr, tar.Close()); err != nil {
		return "", fmt.Errorf("mmdebstrap: %w; it said:\n%s", err, said.String())
	}
	return made, os.WriteFile(filepath.Join(made, "digest"), []byte(hex.EncodeToString(sum.Sum(nil))), 0o644)
}

func mmdebstrapArgs(root catalog.Root, hook string) []string {
	variant, stage := "extract", "--extract-hook="
	if root.Installed {
		variant, stage = "minbase", "--customize-hook="
	}
	// The hook sees the root at "$1"; the script's arguments lie below it.
	run := "sh " + hook
	for _, arg := range root.Args {
		run += ` "$1"` + strings.TrimSuffix(arg, "/")
	}
	args := []string{
		"--variant=" + variant, "--format=tar", "--include=" + strings.Join(root.Packages, ","), stage + run,
	}
	for _, option := range slim {
		args = append(args, "--dpkgopt="+strings.Replace(option, " ", "=", 1))
	}
	return append(args, "bookworm", "-", "-")
}
