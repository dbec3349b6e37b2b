package layer

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"
)

// Tree is a directory of a root that lies in a tar, with the owners and modes of
// the tar and in its order.
type Tree struct {
	Tar       string
	TarDigest string
	Dir       string // absolute inside the tar; "/" for all of it
}

// Digest follows the tar's own and the directory chosen.
func (t Tree) Digest() (string, error) { return t.TarDigest + ":" + path.Clean(t.Dir), nil }

func (t Tree) entries(tw *tar.Writer, epoch time.Time) error {
	file, err := os.Open(t.Tar)
	if err != nil {
		return fmt.Errorf("reading a root: %w", err)
	}
	defer file.Close()
	in, found := tar.NewReader(file), false
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("reading the root %s: %w", t.Tar, err)
		}
		name, ok := t.inside(header.Name)
		if !ok || ofTheMachine(name) {
			continue
		}
		found = true
		if err := t.copyEntry(tw, in, header, name, epoch); err != nil {
			return fmt.Errorf("copying %s of the root %s: %w", header.Name, t.Tar, err)
		}
	}
	if !found {
		return fmt.Errorf("the root %s has nothing in %s", t.Tar, t.Dir)
	}
	return nil
}

// inside gives the name of a tar's entry relative to Dir, "." for Dir itself.
func (t Tree) inside(name string) (string, bool) {
	name, dir := path.Join("/", name), path.Clean(t.Dir)
	switch {
	case name == dir:
		return ".", true
	case dir == "/":
		return name[1:], true
	default:
		return strings.CutPrefix(name, dir+"/")
	}
}

// ofTheMachine tells what a root got from the machine that it was made on and
// what a container runtime mounts over.
func ofTheMachine(name string) bool {
	return strings.HasPrefix(name, "dev/") || name == "etc/hostname" || name == "etc/resolv.conf"
}

func (t Tree) copyEntry(tw *tar.Writer, in io.Reader, header *tar.Header, name string, epoch time.Time) error {
	out := &tar.Header{
		Typeflag: header.Typeflag, Name: name, Linkname: header.Linkname, Size: header.Size, Mode: header.Mode,
		Uid: header.Uid, Gid: header.Gid, ModTime: header.ModTime, PAXRecords: xattrs(header), Format: tar.FormatPAX,
	}
	if out.ModTime.After(epoch) {
		out.ModTime = epoch
	}
	if header.Typeflag == tar.TypeDir {
		out.Name += "/"
	}
	if header.Typeflag == tar.TypeLink {
		target, ok := t.inside(header.Linkname)
		if !ok {
			return fmt.Errorf("it is a hard link to %s, outside of %s", header.Linkname, t.Dir)
		}
		out.Linkname = target
	}
	if err := tw.WriteHeader(out); err != nil {
		return err
	}
	_, err := io.Copy(tw, in)
	return err
}

// xattrs keeps file capabilities and the like, not the access times beside them.
func xattrs(header *tar.Header) map[string]string {
	var kept map[string]string
	for key, value := range header.PAXRecords {
		if strings.HasPrefix(key, "SCHILY.xattr.") {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = value
		}
	}
	return kept
}
