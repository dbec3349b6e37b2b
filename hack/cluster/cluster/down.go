package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/berth-dev/berth/hack/cluster/node"
)

// Down ends the cluster and removes everything of it but the built binaries. It's
// no error if there is none, or if an earlier Down or Up stopped half-way.
func (c Cluster) Down(ctx context.Context, progress io.Writer) error {
	if os.Geteuid() != 0 {
		return errors.New("taking a cluster down needs root: run it with `sudo -E`")
	}
	lock, err := c.lock(progress)
	if err != nil {
		return err
	}
	defer lock.Close()
	dirs, err := c.nodeDirs()
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := node.Stop(ctx, dir); err != nil {
			return fmt.Errorf("stopping %s: %w", filepath.Base(dir), err)
		}
	}
	if err := node.RemoveCgroups(ctx, node.CgroupOf(c.ID)); err != nil {
		return err
	}
	if err := os.RemoveAll(c.State()); err != nil {
		return fmt.Errorf("removing the cluster's state: %w", err)
	}
	fmt.Fprintf(progress, "Cluster %s is down\n", c.ID)
	return nil
}

// nodeDirs lists the folders of the nodes that there are, whatever the options
// say.
func (c Cluster) nodeDirs() ([]string, error) {
	parent := filepath.Join(c.State(), "nodes")
	entries, err := os.ReadDir(parent)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var dirs []string
	for _, e := range entries {
		dirs = append(dirs, filepath.Join(parent, e.Name()))
	}
	return dirs, err
}
