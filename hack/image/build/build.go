// Package build makes the catalog's images as docker-archive tars, which
// `ctr images import`, `docker load` and `kind load image-archive` take.
package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/berth-dev/berth/hack/image/catalog"
	"github.com/berth-dev/berth/hack/image/debian"
	"github.com/berth-dev/berth/hack/image/layer"
	"github.com/berth-dev/berth/hack/image/lock"
)

// format is part of every image's inputs: raise it when the same inputs begin to
// make another image.
const format = 1

// Epoch is the time that images and their files carry, so that equal inputs make
// equal bytes.
var Epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Builder makes images from the checkout at Source into the directory Out.
type Builder struct {
	Source, Out string
	Version     string
	Debian      Roots
	Log         io.Writer // told how far a compilation is that takes long
}

// Roots makes Debian roots; a debian.Builder does.
type Roots interface {
	Root(context.Context, catalog.Root) (debian.Tree, error)
}

// Result is an image's tar.
type Result struct {
	Ref, Path string
	Size      int64 // bytes
	Unchanged bool  // the tar was there, made from the same inputs
}

// Image makes one image, unless its tar is there and was made from the same inputs.
// Builds into one directory wait for each other.
func (b Builder) Image(ctx context.Context, image catalog.Image) (Result, error) {
	if err := os.MkdirAll(b.Out, 0o755); err != nil {
		return Result{}, fmt.Errorf("making the place for images: %w", err)
	}
	unlock, err := lock.File(filepath.Join(b.Out, ".lock"))
	if err != nil {
		return Result{}, err
	}
	defer unlock()
	result, err := b.image(ctx, image)
	if err != nil {
		return Result{}, fmt.Errorf("image %s: %w", image.Name, err)
	}
	return result, nil
}

func (b Builder) image(ctx context.Context, image catalog.Image) (Result, error) {
	sources, err := b.sources(ctx, image)
	if err != nil {
		return Result{}, err
	}
	inputs, err := b.inputs(image, sources)
	if err != nil {
		return Result{}, err
	}
	result := Result{
		Ref:  catalog.Repository + "/" + image.Name + ":" + b.Version,
		Path: filepath.Join(b.Out, image.Name+".tar"),
	}
	stamp := filepath.Join(b.Out, "."+image.Name+".inputs")
	result.Unchanged, err = unchanged(result.Path, stamp, inputs)
	if err != nil {
		return Result{}, err
	}
	if !result.Unchanged {
		err := b.write(result, image, sources)
		if err == nil {
			err = os.WriteFile(stamp, []byte(inputs), 0o644)
		}
		if err != nil {
			return Result{}, err
		}
	}
	info, err := os.Stat(result.Path)
	if err != nil {
		return Result{}, err
	}
	result.Size = info.Size()
	return result, nil
}

// sources gives the image's layers in order, once all that they need is built.
func (b Builder) sources(ctx context.Context, image catalog.Image) ([]layer.Source, error) {
	var sources []layer.Source
	if image.Base != "" {
		source, err := b.fromStage(ctx, catalog.Copy{Stage: image.Base, Source: "/", Target: "/"})
		if err != nil {
			return nil, err
		}
		sources = append(sources, source)
	}
	for _, c := range image.Copies {
		if c.Stage == "" {
			sources = append(sources, layer.File{Path: filepath.Join(b.Source, c.Source), Target: c.Target})
			continue
		}
		source, err := b.fromStage(ctx, c)
		if err != nil {
			return nil, err
		}
		sources = append(sources, source)
	}
	return sources, nil
}

func (b Builder) fromStage(ctx context.Context, c catalog.Copy) (layer.Source, error) {
	for _, binary := range catalog.Binaries {
		if binary.Stage == c.Stage && binary.Output == c.Source {
			file, err := b.compile(ctx, binary)
			return layer.File{Path: file, Target: c.Target}, err
		}
	}
	for _, root := range catalog.Roots {
		if root.Stage == c.Stage && c.Target == "/" {
			tree, err := b.Debian.Root(ctx, root)
			return layer.Tree{Tar: tree.Tar, TarDigest: tree.Digest, Dir: c.Source}, err
		}
	}
	return nil, fmt.Errorf("no stage %s makes %s for %s; see hack/image/catalog", c.Stage, c.Source, c.Target)
}

// inputs is a hash of all that decides the image's bytes.
func (b Builder) inputs(image catalog.Image, sources []layer.Source) (string, error) {
	parts := []any{format, image, b.Version, Epoch.Unix(), runtime.GOARCH, runtime.Version()}
	for _, source := range sources {
		digest, err := source.Digest()
		if err != nil {
			return "", err
		}
		parts = append(parts, digest)
	}
	data, err := json.Marshal(parts)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

func unchanged(tar, stamp, inputs string) (bool, error) {
	last, stampErr := os.ReadFile(stamp)
	_, tarErr := os.Stat(tar)
	err := errors.Join(stampErr, tarErr)
	if errors.Is(stampErr, fs.ErrNotExist) || errors.Is(tarErr, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && string(last) == inputs, err
}
