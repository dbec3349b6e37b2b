package layer

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	old   = time.Date(2023, 5, 1, 0, 0, 0, 0, time.UTC)
	late  = time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
)

func TestTreeTakesADirectoryOfARootWithItsOwnersModesAndLinks(t *testing.T) {
	t.Parallel()
	root := writeTar(t, []tar.Header{
		{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755, ModTime: late},
		{Name: "./out/small/", Typeflag: tar.TypeDir, Mode: 0o755, ModTime: late},
		{Name: "./out/small/bin/sh", Typeflag: tar.TypeReg, Mode: 0o755, Size: 3, ModTime: old},
		{Name: "./out/small/bin/ls", Typeflag: tar.TypeSymlink, Linkname: "sh", Mode: 0o777, ModTime: late},
		{Name: "./out/small/bin/bash", Typeflag: tar.TypeLink, Linkname: "./out/small/bin/sh", Mode: 0o755, ModTime: old},
		{Name: "./out/small/workspace/", Typeflag: tar.TypeDir, Mode: 0o755, Uid: 1000, Gid: 1000, ModTime: late},
		{Name: "./out/smaller/", Typeflag: tar.TypeDir, Mode: 0o755, ModTime: late},
	})
	got := read(t, Tree{Tar: root, Dir: "/out/small/"})
	want := []string{
		"./ dir 0755 0:0 2026-01-01 ",
		"bin/sh file 0755 0:0 2023-05-01 ",
		"bin/ls symlink 0777 0:0 2026-01-01 sh",
		"bin/bash hardlink 0755 0:0 2023-05-01 bin/sh",
		"workspace/ dir 0755 1000:1000 2026-01-01 ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries of the layer (-want +got):\n%s", diff)
	}
}

func TestTreeLeavesOutWhatBelongsToTheBuildMachine(t *testing.T) {
	t.Parallel()
	root := writeTar(t, []tar.Header{
		{Name: "./dev/", Typeflag: tar.TypeDir, Mode: 0o755, ModTime: old},
		{Name: "./dev/null", Typeflag: tar.TypeChar, Mode: 0o666, ModTime: old},
		{Name: "./etc/hostname", Typeflag: tar.TypeReg, Mode: 0o644, ModTime: old},
		{Name: "./etc/passwd", Typeflag: tar.TypeReg, Mode: 0o644, ModTime: old},
		{Name: "./etc/resolv.conf", Typeflag: tar.TypeReg, Mode: 0o644, ModTime: old},
	})
	want := []string{"dev/ dir 0755 0:0 2023-05-01 ", "etc/passwd file 0644 0:0 2023-05-01 "}
	if diff := cmp.Diff(want, read(t, Tree{Tar: root, Dir: "/"})); diff != "" {
		t.Errorf("entries of the layer (-want +got):\n%s", diff)
	}
}

func TestTreeRefusesWhatItCannotTakeWhole(t *testing.T) {
	t.Parallel()
	root := writeTar(t, []tar.Header{
		{Name: "./bin/sh", Typeflag: tar.TypeReg, Mode: 0o755, ModTime: old},
		{Name: "./out/sh", Typeflag: tar.TypeLink, Linkname: "./bin/sh", ModTime: old},
	})
	for _, dir := range []string{"/absent", "/out"} {
		if err := Write(filepath.Join(t.TempDir(), "layer"), Tree{Tar: root, Dir: dir}, epoch); err == nil {
			t.Errorf("a layer was made of %s, which is absent or links out of itself", dir)
		}
	}
}

func TestFileLayerDoesNotDependOnTimesAndUmask(t *testing.T) {
	t.Parallel()
	var layers, digests []string
	for i, mode := range []os.FileMode{0o600, 0o664} {
		dir := t.TempDir()
		etc := filepath.Join(dir, "etc")
		program := filepath.Join(etc, "run")
		err := errors.Join(os.Mkdir(etc, 0o700+mode&0o77), os.WriteFile(filepath.Join(etc, "passwd"), []byte("x"), mode),
			os.WriteFile(program, nil, 0o700), os.Chtimes(program, old, old.Add(time.Duration(i)*time.Hour)))
		if err != nil {
			t.Fatal(err)
		}
		source := File{Path: dir, Target: "/"}
		want := []string{
			"etc/ dir 0755 0:0 2026-01-01 ", "etc/passwd file 0644 0:0 2026-01-01 ", "etc/run file 0755 0:0 2026-01-01 ",
		}
		if diff := cmp.Diff(want, read(t, source)); diff != "" {
			t.Errorf("entries of the layer (-want +got):\n%s", diff)
		}
		digest, err := source.Digest()
		if err != nil {
			t.Fatal(err)
		}
		layers, digests = append(layers, bytesOf(t, source)), append(digests, digest)
	}
	if layers[0] != layers[1] || digests[0] != digests[1] {
		t.Error("the same content made two layers")
	}
}

func writeTar(t *testing.T, headers []tar.Header) string {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "root.tar"))
	if err != nil {
		t.Fatal(err)
	}
	tw := tar.NewWriter(file)
	for _, header := range headers {
		err := tw.WriteHeader(&header)
		if err == nil {
			_, err = tw.Write(make([]byte, header.Size))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(tw.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
	return file.Name()
}

func bytesOf(t *testing.T, source Source) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "layer.tar.gz")
	if err := Write(file, source, epoch); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// read gives one line for each entry of the layer: name, type, mode, owner, day, link.
func read(t *testing.T, source Source) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "layer.tar.gz")
	if err := Write(file, source, epoch); err != nil {
		t.Fatal(err)
	}
	zipped, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer zipped.Close()
	zip, err := gzip.NewReader(zipped)
	if err != nil {
		t.Fatal(err)
	}
	types := map[byte]string{
		tar.TypeDir: "dir", tar.TypeReg: "file", tar.TypeSymlink: "symlink", tar.TypeLink: "hardlink",
	}
	var lines []string
	for in := tar.NewReader(zip); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%s %s %04o %d:%d %s %s", h.Name, types[h.Typeflag], h.Mode, h.Uid, h.Gid,
			h.ModTime.UTC().Format(time.DateOnly), h.Linkname))
	}
}
