package build

import (
	"archive/tar"
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/berth-dev/berth/hack/image/catalog"
	"github.com/berth-dev/berth/hack/image/debian"
)

// roots stands for Debian's archive: every root has an empty directory for each image.
type roots struct{ dir, digest string }

func (r roots) Root(_ context.Context, root catalog.Root) (debian.Tree, error) {
	var data bytes.Buffer
	tw := tar.NewWriter(&data)
	for _, image := range catalog.Images {
		for _, c := range image.Copies {
			if c.Stage != root.Stage {
				continue
			}
			if err := tw.WriteHeader(&tar.Header{Name: "." + c.Source, Typeflag: tar.TypeDir, Mode: 0o755}); err != nil {
				return debian.Tree{}, err
			}
		}
	}
	header := &tar.Header{Name: "./workspace/", Typeflag: tar.TypeDir, Mode: 0o755, Uid: 1000, Gid: 1000}
	file := filepath.Join(r.dir, root.Stage+".tar")
	err := errors.Join(tw.WriteHeader(header), tw.Close(), os.WriteFile(file, data.Bytes(), 0o644))
	return debian.Tree{Tar: file, Digest: r.digest}, err
}

// checkout is a source tree with the programs and files that the catalog names.
func checkout(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"go.mod":                        "module example.test/checkout\n\ngo 1.26.0\n",
		"hack/image/nonroot/etc/passwd": "nonroot:x:65532:65532::/:/sbin/nologin\n",
	}
	for _, binary := range catalog.Binaries {
		files[filepath.Join(binary.Package, "main.go")] =
			"package main\n\nvar version = \"none\"\n\nfunc main() { print(version) }\n"
	}
	for file, text := range files {
		file = filepath.Join(dir, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func builder(t *testing.T) Builder {
	t.Helper()
	return Builder{
		Source: checkout(t), Out: t.TempDir(), Version: "v1.2.3", Debian: roots{dir: t.TempDir(), digest: "one"},
		Log: io.Discard,
	}
}

func TestEachImageIsWhatTheCatalogSays(t *testing.T) {
	t.Parallel()
	b := builder(t)
	for _, image := range catalog.Images {
		built := mustBuild(t, b, image)
		if built.Unchanged || built.Ref != "ghcr.io/berth-dev/"+image.Name+":v1.2.3" || built.Size == 0 {
			t.Errorf("building %s gave %+v", image.Name, built)
		}
		tag, err := name.NewTag(built.Ref)
		if err != nil {
			t.Fatal(err)
		}
		archive, err := tarball.ImageFromPath(built.Path, &tag)
		if err != nil {
			t.Fatalf("reading %s by its tag: %v", built.Path, err)
		}
		config, err := archive.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		want := v1.Config{
			User: image.User, WorkingDir: image.Workdir, Env: image.Env, Entrypoint: image.Entrypoint, Cmd: image.Cmd,
			Labels: image.Labels("v1.2.3"),
		}
		if diff := cmp.Diff(want, config.Config, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("configuration of %s (-want +got):\n%s", image.Name, diff)
		}
		platform := config.OS + "/" + config.Architecture
		if want := "linux/" + runtime.GOARCH; platform != want {
			t.Errorf("%s is for %s, want %s", image.Name, platform, want)
		}
	}
}

func TestProgramsAreStaticAndKnowTheirVersion(t *testing.T) {
	t.Parallel()
	b := builder(t)
	for _, binary := range catalog.Binaries {
		file, err := b.compile(t.Context(), binary)
		if err != nil {
			t.Fatal(err)
		}
		program, err := elf.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, segment := range program.Progs {
			if segment.Type == elf.PT_INTERP {
				t.Errorf("%s wants a dynamic loader", binary.Output)
			}
		}
		if err := program.Close(); err != nil {
			t.Fatal(err)
		}
		said, err := exec.CommandContext(t.Context(), file).CombinedOutput()
		if err != nil || string(said) != "v1.2.3" {
			t.Errorf("%s has version %q (%v), want v1.2.3", binary.Output, said, err)
		}
	}
}

func TestASecondBuildIsByteIdenticalInAnotherDirectory(t *testing.T) {
	t.Parallel()
	one, two := builder(t), builder(t)
	for _, image := range catalog.Images {
		first, second := mustRead(t, mustBuild(t, one, image).Path), mustRead(t, mustBuild(t, two, image).Path)
		if !bytes.Equal(first, second) {
			t.Errorf("two builds of %s differ", image.Name)
		}
	}
}

func TestAnImageIsWrittenOnlyWhenItsInputsChanged(t *testing.T) {
	t.Parallel()
	b := builder(t)
	controller, small := image(t, "controller"), image(t, "sandbox-small")
	expect := func(when string, image catalog.Image, unchanged bool) {
		t.Helper()
		if got := mustBuild(t, b, image).Unchanged; got != unchanged {
			t.Errorf("%s: building %s says unchanged=%t, want %t", when, image.Name, got, unchanged)
		}
	}
	expect("first", controller, false)
	expect("first", small, false)
	expect("again", controller, true)
	expect("again", small, true)

	main := filepath.Join(b.Source, "cmd", "controller", "main.go")
	text := strings.Replace(string(mustRead(t, main)), "none", "some", 1)
	text = strings.Replace(text, "print(version)", `print(version, "!")`, 1)
	if err := os.WriteFile(main, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	expect("program edited", controller, false)
	expect("program edited", small, true)

	b.Debian = roots{dir: t.TempDir(), digest: "two"}
	expect("other packages", small, false)
	expect("other packages", controller, true)

	if err := os.Remove(filepath.Join(b.Out, "controller.tar")); err != nil {
		t.Fatal(err)
	}
	expect("tar gone", controller, false)

	b.Version = "v1.2.4"
	expect("other version", small, false)
}

func TestAProgramThatDoesNotCompileSaysSo(t *testing.T) {
	t.Parallel()
	b := builder(t)
	main := filepath.Join(b.Source, "cmd", "gateway", "main.go")
	if err := os.WriteFile(main, []byte("package main\n\nfunc main() { missing() }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := b.Image(t.Context(), image(t, "gateway"))
	if err == nil || !strings.Contains(err.Error(), "undefined: missing") || !strings.Contains(err.Error(), "./cmd/gateway") {
		t.Errorf("the error is %v, want the compiler's words and the package", err)
	}
	if _, err := os.Stat(filepath.Join(b.Out, "gateway.tar")); err == nil {
		t.Error("a tar was left of an image that failed")
	}
}

func image(t *testing.T, name string) catalog.Image {
	t.Helper()
	images, err := catalog.Select([]string{name})
	if err != nil {
		t.Fatal(err)
	}
	return images[0]
}

func mustBuild(t *testing.T, b Builder, image catalog.Image) Result {
	t.Helper()
	result, err := b.Image(t.Context(), image)
	if err != nil {
		t.Fatal(fmt.Errorf("building %s: %w", image.Name, err))
	}
	return result
}

func mustRead(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
