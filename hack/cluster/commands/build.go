package commands

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/hack/cluster/components"
)

// build builds what is missing of these components and returns the cache.
func build(ctx context.Context, list []components.Component) (components.Cache, error) {
	dir, err := components.CacheDir()
	if err != nil {
		return components.Cache{}, err
	}
	cache := components.Cache{Dir: dir}
	return cache, components.Builder{Cache: cache, Progress: os.Stderr}.Build(ctx, list)
}

func buildCommand() *cobra.Command {
	var list bool
	cmd := &cobra.Command{
		Use:   "build [NAME...]",
		Short: "Build all components, or these, into the cache",
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen, err := components.Named(args...)
			if err != nil {
				return err
			}
			var cache components.Cache
			if !list {
				if cache, err = build(cmd.Context(), chosen); err != nil {
					return err
				}
			}
			for _, c := range chosen {
				if list {
					fmt.Printf("%-24s %s\n", c.Name, c.Version())
				} else {
					fmt.Printf("%-24s %s\n", c.Name, cache.Folder(c))
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&list, "list", false, "print names and versions, build nothing")
	return cmd
}

func assetsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "assets",
		Short: "Build what envtest needs and print the folder for KUBEBUILDER_ASSETS",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := components.Named(components.EnvtestNames...)
			if err != nil {
				return err
			}
			cache, err := build(cmd.Context(), list)
			if err != nil {
				return err
			}
			dir, err := cache.Envtest()
			if err == nil {
				fmt.Println(dir)
			}
			return err
		},
	}
}

func pathCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "path NAME",
		Short: "Build a component, such as kubectl, and print the path of its binary",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := components.Named(args...)
			if err != nil {
				return err
			}
			cache, err := build(cmd.Context(), list)
			if err != nil {
				return err
			}
			dir := cache.Folder(list[0])
			if _, one := list[0].Packages[args[0]]; one {
				dir = filepath.Join(dir, args[0])
			}
			fmt.Println(dir)
			return nil
		},
	}
}
