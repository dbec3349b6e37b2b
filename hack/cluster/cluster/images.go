package cluster

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"

	"github.com/berth-dev/berth/hack/cluster/node"
)

// archive makes an image of one static binary in the format of `docker save`.
func archive(reference, name string, binary []byte) (io.Reader, error) {
	layer, err := tarOf(entry{name, 0o755, binary})
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(layer)
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config":       map[string]any{"Entrypoint": []string{"/" + name}, "User": "65535:65535"},
		"rootfs":       map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(sum[:])}},
	})
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal([]map[string]any{
		{"Config": "config.json", "RepoTags": []string{reference}, "Layers": []string{"layer.tar"}},
	})
	if err != nil {
		return nil, err
	}
	image, err := tarOf(entry{"manifest.json", 0o644, manifest}, entry{"config.json", 0o644, config},
		entry{"layer.tar", 0o644, layer})
	return bytes.NewReader(image), err
}

// entry is a file of a tar archive.
type entry struct {
	name string
	mode int64
	data []byte
}

func tarOf(entries ...entry) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		if err := w.WriteHeader(&tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.data))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), w.Close()
}

// importImage gives one node the images of an archive, OCI's or docker's.
func (c Cluster) importImage(ctx context.Context, s node.Spec, image io.Reader) error {
	id, err := node.ReadIdentity(s.Dir())
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, s.Binaries["ctr"], "--address", node.Socket(id), "--namespace", "k8s.io",
		"images", "import", "--snapshotter", "overlayfs", "-")
	cmd.Stdin = image
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("importing an image: %w\n%s", err, out)
	}
	return nil
}

// LoadImages gives every node the images of these archives.
func (c Cluster) LoadImages(ctx context.Context, paths []string, progress io.Writer) error {
	_, o, err := c.running()
	if err != nil {
		return err
	}
	for _, path := range paths {
		for _, s := range c.specs(o) {
			if err := c.loadImage(ctx, s, path); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		fmt.Fprintf(progress, "Loaded %s\n", path)
	}
	return nil
}

func (c Cluster) loadImage(ctx context.Context, s node.Spec, path string) (err error) {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return c.importImage(ctx, s, file)
}
