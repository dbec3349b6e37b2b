// Package layer writes image layers (gzipped tars) whose bytes follow from their
// content alone: sorted or in the order of their source, with fixed owners and times.
package layer

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Source is what a layer is made of.
type Source interface {
	// Digest identifies the content: equal digests make equal layers.
	Digest() (string, error)
	// entries writes the content with no time later than epoch.
	entries(tw *tar.Writer, epoch time.Time) error
}

// Write makes the layer at path.
func Write(path string, source Source, epoch time.Time) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("making a layer: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	// Layers go to a neighbour on this machine more often than over a wire.
	zip, err := gzip.NewWriterLevel(file, gzip.BestSpeed)
	if err != nil {
		return err
	}
	tw := tar.NewWriter(zip)
	return errors.Join(source.entries(tw, epoch), tw.Close(), zip.Close())
}

// File is one file or a directory's content, read from the machine. It belongs
// to root in the image; the mode is 0755 for directories and what is executable,
// 0644 for the rest, whatever the umask of the checkout was.
type File struct {
	Path   string
	Target string // absolute; a directory when Path is one
}

// Digest hashes names, modes and content.
func (f File) Digest() (string, error) {
	sum := sha256.New()
	tw := tar.NewWriter(sum)
	if err := errors.Join(f.entries(tw, time.Unix(0, 0)), tw.Close()); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func (f File) entries(tw *tar.Writer, epoch time.Time) error {
	// WalkDir goes in lexical order.
	return filepath.WalkDir(f.Path, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("reading what goes into a layer: %w", err)
		}
		rel, err := filepath.Rel(f.Path, p)
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path.Join(f.Target, filepath.ToSlash(rel)), "/")
		if name == "" {
			return nil
		}
		return writeFile(tw, p, name, d, epoch)
	})
}

func writeFile(tw *tar.Writer, p, name string, d fs.DirEntry, epoch time.Time) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	header := &tar.Header{Name: name, Mode: 0o644, ModTime: epoch, Format: tar.FormatPAX}
	switch {
	case info.IsDir():
		header.Typeflag, header.Name, header.Mode = tar.TypeDir, name+"/", 0o755
		return tw.WriteHeader(header)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is neither a file nor a directory: layers of files hold nothing else", p)
	case info.Mode()&0o111 != 0:
		header.Mode = 0o755
	}
	file, err := os.Open(p)
	if err != nil {
		return err
	}
	defer file.Close()
	header.Typeflag, header.Size = tar.TypeReg, info.Size()
	if err := tw.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(tw, file)
	return err
}
