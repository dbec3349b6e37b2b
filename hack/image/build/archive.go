package build

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/berth-dev/berth/hack/image/catalog"
	"github.com/berth-dev/berth/hack/image/layer"
)

// write makes the tar beside its place and moves it there when it is whole.
func (b Builder) write(result Result, image catalog.Image, sources []layer.Source) (err error) {
	work, err := os.MkdirTemp(b.Out, ".new-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()

	built := empty.Image
	for i, source := range sources {
		file := filepath.Join(work, strconv.Itoa(i)+".tar.gz")
		if err := layer.Write(file, source, Epoch); err != nil {
			return err
		}
		l, err := tarball.LayerFromFile(file)
		if err != nil {
			return fmt.Errorf("reading a layer back: %w", err)
		}
		built, err = mutate.Append(built, mutate.Addendum{
			Layer: l, History: v1.History{Created: v1.Time{Time: Epoch}, CreatedBy: "hack/image"},
		})
		if err != nil {
			return fmt.Errorf("adding a layer: %w", err)
		}
	}
	if built, err = configure(built, image, b.Version); err != nil {
		return err
	}
	tag, err := name.NewTag(result.Ref)
	if err != nil {
		return fmt.Errorf("the version %q makes no image tag: %w", b.Version, err)
	}
	file := filepath.Join(work, "image.tar")
	if err := tarball.WriteToFile(file, tag, built); err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	return os.Rename(file, result.Path)
}

func configure(built v1.Image, image catalog.Image, version string) (v1.Image, error) {
	config, err := built.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Created = v1.Time{Time: Epoch}
	config.Config = v1.Config{
		User: image.User, WorkingDir: image.Workdir, Env: image.Env,
		Entrypoint: image.Entrypoint, Cmd: image.Cmd, Labels: image.Labels(version),
	}
	return mutate.ConfigFile(built, config)
}
