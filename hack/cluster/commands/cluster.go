package commands

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/hack/cluster/cluster"
	"github.com/berth-dev/berth/hack/cluster/node"
)

// clusterFlag is the name of the cluster that a command works on.
type clusterFlag struct{ name string }

func (f *clusterFlag) bind(cmd *cobra.Command) *cobra.Command {
	name := os.Getenv("BERTH_CLUSTER")
	if name == "" {
		name = "berth"
	}
	cmd.Flags().StringVar(&f.name, "name", name,
		"name of the cluster, unique within this checkout (default from BERTH_CLUSTER)")
	return cmd
}

func upCommand() *cobra.Command {
	var f clusterFlag
	o := cluster.Options{}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the cluster, or complete a start, and wait until it's ready",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := cluster.Open(f.name)
			if err != nil {
				return err
			}
			chosen, err := merge(c, cmd, o)
			if err != nil {
				return err
			}
			return c.Up(cmd.Context(), chosen, os.Stderr)
		},
	}
	cmd.Flags().IntVar(&o.Nodes, "nodes", 1, "number of nodes")
	cmd.Flags().BoolVar(&o.NetworkPolicy, "network-policy", true, "enforce NetworkPolicies")
	cmd.Flags().BoolVar(&o.Kwok, "kwok", false, "run kwok, for nodes annotated kwok.x-k8s.io/node=fake")
	return f.bind(cmd)
}

// merge takes what isn't given from the cluster's last `up`.
func merge(c cluster.Cluster, cmd *cobra.Command, given cluster.Options) (cluster.Options, error) {
	o, found, err := c.Saved()
	if err != nil || !found {
		return given, err
	}
	for flag, take := range map[string]func(){
		"nodes":          func() { o.Nodes = given.Nodes },
		"network-policy": func() { o.NetworkPolicy = given.NetworkPolicy },
		"kwok":           func() { o.Kwok = given.Kwok },
	} {
		if cmd.Flags().Changed(flag) {
			take()
		}
	}
	return o, nil
}

func downCommand() *cobra.Command {
	var f clusterFlag
	return f.bind(&cobra.Command{
		Use:   "down",
		Short: "End the cluster and remove everything of it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := cluster.Open(f.name)
			if err != nil {
				return err
			}
			return c.Down(cmd.Context(), os.Stderr)
		},
	})
}

func statusCommand() *cobra.Command {
	var f clusterFlag
	return f.bind(&cobra.Command{
		Use:   "status",
		Short: "Print what runs and how it is; fails unless all of it is well",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := cluster.Open(f.name)
			if err != nil {
				return err
			}
			return c.Status(cmd.Context(), os.Stdout)
		},
	})
}

func loadImageCommand() *cobra.Command {
	var f clusterFlag
	return f.bind(&cobra.Command{
		Use:   "load-image TAR...",
		Short: "Give all nodes the images of OCI or docker archives",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := cluster.Open(f.name)
			if err != nil {
				return err
			}
			return c.LoadImages(cmd.Context(), args, os.Stderr)
		},
	})
}

func kubeconfigCommand() *cobra.Command {
	var f clusterFlag
	return f.bind(&cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the path of the administrator's kubeconfig, for use within `cluster exec`",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			c, err := cluster.Open(f.name)
			if err != nil {
				return err
			}
			if _, err := os.Stat(c.Kubeconfig()); err != nil {
				return fmt.Errorf("cluster %s is not up: %w", c.ID, err)
			}
			fmt.Println(c.Kubeconfig())
			return nil
		},
	})
}

func execCommand() *cobra.Command {
	var f clusterFlag
	cmd := &cobra.Command{
		Use:   "exec -- COMMAND [ARGUMENT...]",
		Short: "Run a command in the cluster's network, with KUBECONFIG set and kubectl on the PATH",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("nothing to run: cluster exec -- COMMAND")
			}
			c, err := cluster.Open(f.name)
			if err != nil {
				return err
			}
			return c.Exec(args)
		},
	}
	cmd.Flags().SetInterspersed(false) // what follows the command is the command's
	return f.bind(cmd)
}

// superviseCommand is what a node is started with; it's not for people.
func superviseCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "supervise DIR",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return node.Supervise(cmd.Context(), args[0])
		},
	}
}
