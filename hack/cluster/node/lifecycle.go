package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/berth-dev/berth/hack/cluster/process"
)

func pidFile(dir string) string { return filepath.Join(dir, "supervisor.pid") }

// ReadIdentity returns the process that is, or was, PID 1 of the node in dir.
func ReadIdentity(dir string) (process.Identity, error) {
	return process.ReadIdentity(pidFile(dir))
}

// Running returns the node's PID 1, and false if the node doesn't run.
func Running(dir string) (process.Identity, bool, error) {
	id, err := ReadIdentity(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return id, false, nil
	}
	return id, err == nil && id.Alive(), err
}

// Stop ends the node with everything in it. The kernel kills all processes of a
// PID namespace with its PID 1, and takes the mounts and the network with them.
func Stop(ctx context.Context, dir string) error {
	id, running, err := Running(dir)
	if err != nil || !running {
		return err
	}
	return id.Kill(ctx)
}

// Netns is the path of the network namespace of a node's PID 1.
func Netns(id process.Identity) string { return fmt.Sprintf("/proc/%d/ns/net", id.PID) }

// Socket is the path of containerd's socket as it's seen outside the node.
func Socket(id process.Identity) string {
	return fmt.Sprintf("/proc/%d/root/run/containerd/containerd.sock", id.PID)
}
