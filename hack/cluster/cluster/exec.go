package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/hack/cluster/node"
	"github.com/berth-dev/berth/hack/cluster/process"
)

// running returns the first node of the running cluster, and its options.
func (c Cluster) running() (process.Identity, Options, error) {
	o, found, err := c.Saved()
	if err != nil {
		return process.Identity{}, o, err
	}
	notUp := fmt.Errorf("cluster %s is not up: `cluster up` starts it", c.ID)
	if !found {
		return process.Identity{}, o, notUp
	}
	id, running, err := node.Running(c.specs(o)[0].Dir())
	if err == nil && !running {
		err = notUp
	}
	return id, o, err
}

// Exec becomes the command, in the network namespace of the first node, with
// KUBECONFIG set and kubectl on the PATH. Files, processes, standard input and
// exit code are those of a command that is run without it. It returns only when
// it fails.
func (c Cluster) Exec(argv []string) error {
	id, o, err := c.running()
	if err != nil {
		return err
	}
	netns, err := os.Open(node.Netns(id))
	if err != nil {
		return err
	}
	kubectl := filepath.Dir(c.specs(o)[0].Binaries["kubectl"])
	err = errors.Join(
		os.Setenv("KUBECONFIG", c.Kubeconfig()),
		os.Setenv("PATH", kubectl+":"+os.Getenv("PATH")),
	)
	if err != nil {
		return err
	}
	program, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	// execve keeps the calling thread's namespace, and makes it the only thread.
	runtime.LockOSThread()
	if err := unix.Setns(int(netns.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("entering the cluster's network namespace needs root: %w", err)
	}
	err = unix.Exec(program, argv, os.Environ())
	return fmt.Errorf("running %s: %w", strings.Join(argv, " "), err)
}
