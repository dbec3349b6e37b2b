package components

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/hack/cluster/debian"
)

// progressEvery is how often a running build says how far it is.
const progressEvery = 15 * time.Second

// Builder builds components into a cache.
type Builder struct {
	Cache Cache
	// Progress gets a line when something begins, goes on and ends.
	Progress io.Writer
}

// Build builds the components that the cache lacks, one after the other: the Go
// compiler uses all processors for each.
func (b Builder) Build(ctx context.Context, list []Component) error {
	var missing []Component
	for _, c := range list {
		if !b.Cache.Has(c) {
			missing = append(missing, c)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if _, err := exec.LookPath("go"); err != nil {
		return fmt.Errorf("building %s needs Go on the PATH (https://go.dev/dl): %w", missing[0].Name, err)
	}
	fmt.Fprintf(b.Progress, "Building %d component(s) into %s. All of them take about 9 minutes on 2 processors, once.\n",
		len(missing), b.Cache.Dir)
	for i, c := range missing {
		label := fmt.Sprintf("[%d/%d] %s %s", i+1, len(missing), c.Name, c.Version())
		waiting := func() { fmt.Fprintf(b.Progress, "%s: waiting for another process that builds it\n", label) }
		err := b.Cache.publish(c.key(), waiting, func(dir string) error { return b.build(ctx, c, label, dir) })
		if err != nil {
			return fmt.Errorf("building %s: %w", c.Name, err)
		}
	}
	return nil
}

// build builds one component into dir.
func (b Builder) build(ctx context.Context, c Component, label, dir string) error {
	begin := time.Now()
	if err := debian.EnsurePackages(ctx, b.Progress, c.DebianBuild...); err != nil {
		return err
	}
	fmt.Fprintf(b.Progress, "%s: building\n", label)
	src, err := os.MkdirTemp(b.Cache.Dir, "source-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(src)
	if err := c.writeSource(src); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(c.Packages)) {
		args := c.buildArgs(filepath.Join(dir, name), c.Packages[name])
		if err := b.compile(ctx, c, label, src, args); err != nil {
			return err
		}
	}
	if err := c.extract(ctx, src, dir); err != nil {
		return err
	}
	fmt.Fprintf(b.Progress, "%s: built in %s\n", label, time.Since(begin).Round(time.Second))
	return nil
}

func (c Component) writeSource(dir string) error {
	mod, sum := c.modFiles()
	files := map[string][]byte{"go.mod": mod, "go.sum": sum}
	if main := c.source(); main != nil {
		files["main.go"] = main
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// buildArgs are the arguments to go for one binary. -v makes it name each
// package that it compiles, which is what progress is counted from.
func (c Component) buildArgs(out, pkg string) []string {
	ld := []string{"-s", "-w"}
	if c.VersionVar != "" {
		ld = append(ld, "-X", c.VersionVar+"="+c.Version())
	}
	ld = append(ld, c.LDFlags...)
	args := []string{"build", "-v", "-trimpath", "-ldflags", strings.Join(ld, " "), "-o", out}
	if c.Tags != "" {
		args = append(args, "-tags", c.Tags)
	}
	return append(args, pkg)
}

// goCommand is go with nothing of the caller's flags or workspace: those could
// change what is built under the same key.
func goCommand(ctx context.Context, c Component, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cgo := "CGO_ENABLED=0"
	if c.Cgo {
		cgo = "CGO_ENABLED=1"
	}
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly -buildvcs=false", "GOWORK=off", cgo)
	return cmd
}

func (b Builder) compile(ctx context.Context, c Component, label, dir string, args []string) error {
	cmd := goCommand(ctx, c, dir, args...)
	out := &buildOutput{}
	cmd.Stdout, cmd.Stderr = out, out
	done := make(chan struct{})
	stopped := make(chan struct{})
	begin := time.Now()
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(progressEvery)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				fmt.Fprintf(b.Progress, "%s: %d packages compiled, %s\n",
					label, out.packages.Load(), time.Since(begin).Round(time.Second))
			}
		}
	}()
	err := cmd.Run()
	close(done)
	<-stopped
	if err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out.rest())
	}
	return nil
}

// extract copies the files of the module that belong to the result.
func (c Component) extract(ctx context.Context, src, dir string) error {
	if len(c.Extract) == 0 {
		return nil
	}
	out, err := goCommand(ctx, c, src, "list", "-m", "-f", "{{.Dir}}", c.Module).Output()
	if err != nil {
		return fmt.Errorf("finding the source of %s: %w", c.Module, err)
	}
	module := strings.TrimSpace(string(out))
	for name, patterns := range c.Extract {
		var documents [][]byte
		for _, pattern := range patterns {
			found, err := filepath.Glob(filepath.Join(module, pattern))
			if err != nil || len(found) == 0 {
				return errors.Join(fmt.Errorf("%s has no file %s", c.Module, pattern), err)
			}
			for _, file := range found {
				data, err := os.ReadFile(file)
				if err != nil {
					return err
				}
				documents = append(documents, data)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), bytes.Join(documents, []byte("\n---\n")), 0o644); err != nil {
			return err
		}
	}
	return nil
}
