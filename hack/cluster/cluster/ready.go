package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/berth-dev/berth/hack/cluster/node"
	"github.com/berth-dev/berth/hack/cluster/process"
)

// readyWait is how long a started cluster may take until it's ready. It takes
// about 10 seconds on two idle processors.
const readyWait = 5 * time.Minute

// awaitReady gives each node its pause image and waits until pods can run.
func (c Cluster) awaitReady(ctx context.Context, o Options, progress io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyWait, fmt.Errorf("not ready after %s", readyWait))
	defer cancel()
	specs := c.specs(o)
	for _, s := range specs {
		id, err := node.ReadIdentity(s.Dir())
		if err != nil {
			return err
		}
		var stop context.CancelFunc
		if ctx, stop, err = id.While(ctx, fmt.Errorf("%s ended", s.Name())); err != nil {
			return c.explain(s, err)
		}
		defer stop()
		if err := c.importPause(ctx, s, id); err != nil {
			return c.explain(s, err)
		}
	}
	first, err := node.ReadIdentity(specs[0].Dir())
	if err != nil {
		return err
	}
	client, err := c.api(first)
	if err != nil {
		return err
	}
	fmt.Fprintln(progress, "Waiting for the API server")
	if err := process.NewProber(process.DialIn(node.Netns(first))).Wait(ctx, node.APIReady); err != nil {
		return c.explain(specs[0], err)
	}
	fmt.Fprintln(progress, "Waiting for nodes to be ready")
	for _, s := range specs {
		if err := c.awaitNode(ctx, client, s); err != nil {
			return c.explain(s, err)
		}
	}
	// Pods are refused before the controller manager has made this.
	anything := func(object) error { return nil }
	return client.await(ctx, "/api/v1/namespaces/default/serviceaccounts", "default", anything)
}

// awaitNode waits until Kubernetes calls the node ready and its daemons answer.
func (c Cluster) awaitNode(ctx context.Context, client api, s node.Spec) error {
	if err := client.await(ctx, "/api/v1/nodes", s.Name(), object.ready); err != nil {
		return err
	}
	id, err := node.ReadIdentity(s.Dir())
	if err != nil {
		return err
	}
	prober := process.NewProber(process.DialIn(node.Netns(id)))
	for daemon, probe := range s.Readiness() {
		if err := prober.Wait(ctx, probe); err != nil {
			return fmt.Errorf("%s: %w", daemon, err)
		}
	}
	return nil
}

// importPause gives a node the image that every pod needs.
func (c Cluster) importPause(ctx context.Context, s node.Spec, id process.Identity) error {
	socket := process.Probe("unix://" + node.Socket(id))
	if err := process.NewProber(process.DialIn(node.Netns(id))).Wait(ctx, socket); err != nil {
		return err
	}
	binary, err := os.ReadFile(s.Binaries["pause"])
	if err != nil {
		return err
	}
	image, err := archive(node.PauseImage, "pause", binary)
	if err != nil {
		return err
	}
	return c.importImage(ctx, s, image)
}

// explain adds where to look.
func (c Cluster) explain(s node.Spec, err error) error {
	return fmt.Errorf("%s: %w (logs: %s and %s)", s.Name(), err, s.File("supervisor.log"), s.File("log"))
}
