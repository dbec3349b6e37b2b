// Package commands is the command line of `cluster`: it parses, calls and prints.
package commands

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Execute runs the command and returns the exit code of the process. Results go
// to standard output, progress and errors to standard error.
func Execute(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := &cobra.Command{
		Use:           "cluster",
		Short:         "A real Kubernetes on a bare Linux machine",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(buildCommand(), assetsCommand(), pathCommand())
	root.AddCommand(upCommand(), downCommand(), statusCommand(), loadImageCommand(), kubeconfigCommand(), execCommand(), superviseCommand())
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		return 1
	}
	return 0
}
