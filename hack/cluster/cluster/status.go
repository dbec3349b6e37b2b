package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/berth-dev/berth/hack/cluster/node"
	"github.com/berth-dev/berth/hack/cluster/process"
)

// Status prints what runs, and how it is. It fails if anything that should run
// doesn't, or isn't healthy.
func (c Cluster) Status(ctx context.Context, out io.Writer) error {
	_, o, err := c.running()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Cluster:     %s\nKubeconfig:  %s\nState, logs: %s\n\n", c.ID, c.Kubeconfig(), c.State())
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "NODE\tDAEMON\tPID\tHEALTH")
	var failed []error
	for _, s := range c.specs(o) {
		failed = append(failed, c.nodeStatus(ctx, s, table))
	}
	return errors.Join(errors.Join(failed...), table.Flush())
}

func (c Cluster) nodeStatus(ctx context.Context, s node.Spec, table io.Writer) error {
	id, running, err := node.Running(s.Dir())
	if err != nil {
		return err
	}
	if !running {
		fmt.Fprintf(table, "%s\t-\t-\tnot running\n", s.Name())
		return fmt.Errorf("%s doesn't run: `cluster up` starts it", s.Name())
	}
	children, err := process.Children(id.PID)
	if err != nil {
		return err
	}
	prober := process.NewProber(process.DialIn(node.Netns(id)))
	probes := s.Readiness()
	probes["containerd"] = process.Probe("unix://" + node.Socket(id))
	var failed []error
	for _, d := range s.Daemons() {
		pid, health := "-", "not running"
		if child, ok := children[d.Name]; ok {
			pid, health = fmt.Sprint(child), "ok"
			if probe, ok := probes[d.Name]; ok {
				if err := prober.Ask(ctx, probe); err != nil {
					health = err.Error()
				}
			}
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", s.Name(), d.Name, pid, health)
		if health != "ok" {
			failed = append(failed, fmt.Errorf("%s on %s: %s", d.Name, s.Name(), health))
		}
	}
	return errors.Join(failed...)
}
