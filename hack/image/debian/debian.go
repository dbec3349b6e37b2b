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
	"github.com/berth-dev/berth/hack/image/lock"
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
	// Since is the time before which a cached root is too old, zero for never.
	Since time.Time
	// Log is told what takes time.
	Log io.Writer

	// tools makes sure that mmdebstrap is there; nil installs it when it isn't.
	tools func(context.Context, io.Writer) error
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
	unlock, err := lock.File(filepath.Join(dir, root.Stage+".lock"))
	if err != nil {
		return Tree{}, err
	}
	defer unlock()

	entry := filepath.Join(dir, root.Stage+"-"+key[:16])
	if tree, err := b.cached(entry); !errors.Is(err, fs.ErrNotExist) {
		return tree, err
	}
	made, err := b.make(ctx, dir, root, script)
	if err != nil {
		return Tree{}, fmt.Errorf("making the Debian root %s: %w", root.Stage, err)
	}
	if err := errors.Join(os.RemoveAll(entry), os.Rename(made, entry)); err != nil {
		return Tree{}, errors.Join(fmt.Errorf("caching the Debian root %s: %w", root.Stage, err), os.RemoveAll(made))
	}
	return b.cached(entry)
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

// cached gives the root at entry, or fs.ErrNotExist when none is there that is new enough.
func (b Builder) cached(entry string) (Tree, error) {
	file := filepath.Join(entry, "digest")
	info, err := os.Stat(file)
	if err != nil {
		return Tree{}, fmt.Errorf("looking up a cached Debian root: %w", err)
	}
	if info.ModTime().Before(b.Since) {
		return Tree{}, fmt.Errorf("the cached Debian root of %s is too old: %w", info.ModTime(), fs.ErrNotExist)
	}
	digest, err := os.ReadFile(file)
	if err != nil {
		return Tree{}, fmt.Errorf("reading a cached Debian root: %w", err)
	}
	return Tree{Tar: filepath.Join(entry, "root.tar"), Digest: string(digest)}, nil
}

// make runs mmdebstrap and returns a new directory below dir with root.tar and digest.
func (b Builder) make(ctx context.Context, dir string, root catalog.Root, script []byte) (made string, err error) {
	tools := b.tools
	if tools == nil {
		tools = ensureTools
	}
	if err := tools(ctx, b.Log); err != nil {
		return "", err
	}
	work, err := os.MkdirTemp(dir, ".new-")
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(work))
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

	fmt.Fprintf(b.Log, "Making the Debian root %s (%s)\n", root.Stage, strings.Join(root.Packages, " "))
	return work, b.run(ctx, work, root, hook)
}

// run has mmdebstrap write dir/root.tar, and puts the tar's digest beside it.
func (b Builder) run(ctx context.Context, dir string, root catalog.Root, hook string) error {
	tar, err := os.Create(filepath.Join(dir, "root.tar"))
	if err != nil {
		return err
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
	runErr := cmd.Run()
	if ctx.Err() != nil {
		return errors.Join(fmt.Errorf("interrupted: %w", ctx.Err()), tar.Close())
	}
	if err := errors.Join(runErr, tar.Close()); err != nil {
		if os.Geteuid() != 0 {
			err = fmt.Errorf("%w (without root it needs user namespaces and your name in /etc/subuid and /etc/subgid)", err)
		}
		return fmt.Errorf("mmdebstrap: %w; it said:\n%s", err, said.String())
	}
	return os.WriteFile(filepath.Join(dir, "digest"), []byte(hex.EncodeToString(sum.Sum(nil))), 0o644)
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
