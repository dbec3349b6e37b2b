package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"github.com/berth-dev/berth/hack/cluster/components"
	"github.com/berth-dev/berth/hack/cluster/node"
	"github.com/berth-dev/berth/hack/cluster/process"
)

// Options is what a cluster is made with.
type Options struct {
	// Nodes is their number, at least 1.
	Nodes int `json:"nodes"`
	// NetworkPolicy runs a policy engine on each node.
	NetworkPolicy bool `json:"networkPolicy"`
	// Kwok runs kwok, which plays the kubelet of nodes that don't exist.
	Kwok bool `json:"kwok"`
}

// Validate says what is wrong with the options.
func (o Options) Validate() error {
	if o.Nodes < 1 || o.Nodes > node.MaxNodes {
		return fmt.Errorf("a cluster has 1 to %d nodes, not %d", node.MaxNodes, o.Nodes)
	}
	return nil
}

// components lists what the cluster is built from.
func (o Options) components() []components.Component {
	var list []components.Component
	for _, c := range components.Catalog() {
		if c.Name == "kwok" && !o.Kwok || c.Name == "kube-router" && !o.NetworkPolicy {
			continue
		}
		list = append(list, c)
	}
	return list
}

// Saved returns the options of the last `up`, and false if there was none.
func (c Cluster) Saved() (o Options, found bool, err error) {
	data, err := os.ReadFile(filepath.Join(c.State(), "options.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return o, false, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &o)
	}
	return o, err == nil, err
}

// Up brings the cluster up and returns when it's ready for pods. What is up
// already stays as it is; what an earlier Up left half-done is completed.
func (c Cluster) Up(ctx context.Context, o Options, progress io.Writer) error {
	begin := time.Now()
	if err := o.Validate(); err != nil {
		return err
	}
	if err := c.prepare(ctx, o, progress); err != nil {
		return err
	}
	lock, err := c.lock(progress)
	if err != nil {
		return err
	}
	defer lock.Close()
	saved, _, err := c.Saved()
	if err != nil {
		return fmt.Errorf("reading what the cluster was started with: %w", err)
	}
	if saved.Nodes > o.Nodes {
		return fmt.Errorf("the cluster has %d nodes, and taking some away is not supported: `cluster down` first", saved.Nodes)
	}
	if err := c.start(ctx, o, progress); err != nil {
		return err
	}
	if err := c.awaitReady(ctx, o, progress); err != nil {
		return err
	}
	fmt.Fprintf(progress, "Cluster %s is up: %d node(s), after %s\n", c.ID, o.Nodes, time.Since(begin).Round(100*time.Millisecond))
	return nil
}

// prepare installs and builds what is needed.
func (c Cluster) prepare(ctx context.Context, o Options, progress io.Writer) error {
	if err := c.preflight(ctx, o, progress); err != nil {
		return err
	}
	return components.Builder{Cache: c.Cache, Progress: progress}.Build(ctx, o.components())
}

// lock keeps two commands from changing one cluster at a time.
func (c Cluster) lock(progress io.Writer) (*os.File, error) {
	return process.Lock(filepath.Join(c.Cache.Dir, "locks", "cluster-"+c.ID), func() {
		fmt.Fprintf(progress, "Waiting for another command that works on cluster %s\n", c.ID)
	})
}

// start writes the cluster's files and starts the nodes that don't run as wanted.
func (c Cluster) start(ctx context.Context, o Options, progress io.Writer) error {
	if err := os.MkdirAll(c.State(), 0o755); err != nil {
		return err
	}
	if err := c.writeCredentials(o.Nodes); err != nil {
		return fmt.Errorf("making credentials: %w", err)
	}
	if err := writeJSON(filepath.Join(c.State(), "options.json"), o); err != nil {
		return err
	}
	specs := c.specs(o)
	first, restarted, err := ensureNode(ctx, specs[0], process.Identity{}, progress)
	if err != nil {
		return err
	}
	for _, s := range specs[1:] {
		if restarted { // it hung on the old first node's bridge
			if err := node.Stop(ctx, s.Dir()); err != nil {
				return err
			}
		}
		if _, _, err := ensureNode(ctx, s, first, progress); err != nil {
			return err
		}
	}
	return nil
}

// specs describes the nodes of a cluster.
func (c Cluster) specs(o Options) []node.Spec {
	binaries := map[string]string{}
	stages := ""
	for _, component := range o.components() {
		for name := range component.Packages {
			binaries[name] = filepath.Join(c.Cache.Folder(component), name)
		}
		for name := range component.Extract {
			stages = filepath.Join(c.Cache.Folder(component), name)
		}
	}
	list := make([]node.Spec, o.Nodes)
	for i := range list {
		list[i] = node.Spec{
			Cluster: c.ID, Index: i, State: c.State(), Binaries: binaries,
			NetworkPolicy: o.NetworkPolicy, KwokStages: stages,
		}
	}
	return list
}

// ensureNode starts the node unless it runs just as the spec says, and returns
// its PID 1 and whether it was started.
func ensureNode(ctx context.Context, s node.Spec, first process.Identity, progress io.Writer) (process.Identity, bool, error) {
	id, running, err := node.Running(s.Dir())
	if err != nil {
		return id, false, err
	}
	if running {
		written, err := node.Load(s.Dir())
		if err == nil && reflect.DeepEqual(written, s) {
			return id, false, nil
		}
		fmt.Fprintf(progress, "Restarting %s, which runs with other settings\n", s.Name())
		if err := node.Stop(ctx, s.Dir()); err != nil {
			return id, false, err
		}
	}
	if err := os.MkdirAll(s.Dir(), 0o755); err != nil {
		return id, false, err
	}
	if err := writeJSON(s.File("spec.json"), s); err != nil {
		return id, false, err
	}
	fmt.Fprintf(progress, "Starting %s\n", s.Name())
	if err := node.Start(s, first); err != nil {
		return id, false, err
	}
	id, _, err = node.Running(s.Dir())
	return id, true, err
}

func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return process.WriteFile(path, append(data, '\n'), 0o644)
}
