// Image builds Berth's container images as tars on a machine without a container
// engine. See README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/berth-dev/berth/hack/image/build"
	"github.com/berth-dev/berth/hack/image/catalog"
	"github.com/berth-dev/berth/hack/image/debian"
)

const usage = `Usage: image build [--version V] [--out DIR] [--refresh] [NAME...]
       image list

build makes the images of those names, or all, as DIR/NAME.tar (docker-archive).
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "image:", err)
		}
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, log io.Writer) error {
	switch {
	case len(args) == 1 && args[0] == "list":
		fmt.Fprintln(out, strings.Join(catalog.Names(), "\n"))
		return nil
	case len(args) > 0 && args[0] == "build":
		return buildImages(ctx, args[1:], out, log)
	default:
		fmt.Fprint(log, usage)
		return flag.ErrHelp
	}
}

func buildImages(ctx context.Context, args []string, out, log io.Writer) error {
	flags := flag.NewFlagSet("image build", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.Usage = func() { fmt.Fprint(log, usage); flags.PrintDefaults() }
	version := flags.String("version", "dev", "the images' tag and the programs' version")
	dir := flags.String("out", "", "where the tars go (default dist/images in the checkout)")
	refresh := flags.Bool("refresh", false, "take today's Debian packages in place of cached ones")
	if err := flags.Parse(args); err != nil {
		return err
	}
	images, err := catalog.Select(flags.Args())
	if err != nil {
		return err
	}
	source, err := checkout()
	if err != nil {
		return err
	}
	cache, err := cacheDir()
	if err != nil {
		return err
	}
	if *dir == "" {
		*dir = filepath.Join(source, "dist", "images")
	}
	roots := debian.Builder{Cache: cache, Epoch: build.Epoch, Log: log}
	if *refresh {
		roots.Since = time.Now()
	}
	builder := build.Builder{
		Source: source, Out: *dir, Version: *version,
		Debian: roots, Log: log,
	}
	for _, image := range images {
		if err := buildImage(ctx, builder, image, out); err != nil {
			return err
		}
	}
	return nil
}

func buildImage(ctx context.Context, builder build.Builder, image catalog.Image, out io.Writer) error {
	start := time.Now()
	result, err := builder.Image(ctx, image)
	if err != nil {
		return err
	}
	state := "built"
	if result.Unchanged {
		state = "unchanged"
	}
	_, err = fmt.Fprintf(out, "%s\t%.1f MB\t%.1fs\t%s\t%s\n",
		result.Path, float64(result.Size)/1e6, time.Since(start).Seconds(), state, result.Ref)
	return err
}

// checkout finds the top of the repository from the working directory upwards.
func checkout() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(data), "module github.com/berth-dev/berth\n") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("not inside a checkout of github.com/berth-dev/berth: change to one")
		}
		dir = filepath.Dir(dir)
	}
}

// cacheDir is where what takes long to make lives, outside of any checkout.
func cacheDir() (string, error) {
	if dir := os.Getenv("BERTH_CACHE"); dir != "" {
		return filepath.Join(dir, "image"), nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache: %w; set BERTH_CACHE to a directory", err)
	}
	return filepath.Join(dir, "berth", "image"), nil
}
