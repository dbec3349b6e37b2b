// Command berth-agent is PID 1 of a sandbox: it runs the session's commands
// and hands out its files. docs/agent.md is the reference of its routes.
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/sandbox-agent/install"
	"github.com/berth-dev/berth/sandbox-agent/serve"
	"github.com/berth-dev/berth/sandbox-agent/supervise"
)

// version is set by the build (-X main.version=...).
var version = ""

func main() {
	if err := root().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "berth-agent:", err)
		os.Exit(1)
	}
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "berth-agent",
		Short:         "Runs a sandbox's shell and hands out its files",
		SilenceUsage:  true,
		SilenceErrors: true,
		CompletionOptions: cobra.CompletionOptions{
			DisableDefaultCmd: true,
		},
	}
	cmd.AddCommand(serveCommand(), superviseCommand(), installCommand(), versionCommand())
	return cmd
}

func serveCommand() *cobra.Command {
	var o serve.Options
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve one session",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// A call passes from goroutine to goroutine, few of which ever run side by
			// side: on a second processor each would have to be woken there first.
			runtime.GOMAXPROCS(1)
			code, err := serve.Run(o, os.Environ())
			if err == nil && code != 0 {
				os.Exit(code)
			}
			return err
		},
	}
	o.BindFlags(cmd.Flags())
	return cmd
}

// superviseCommand is for the agent alone.
func superviseCommand() *cobra.Command {
	var processors []int
	cmd := &cobra.Command{
		Use:    "supervise",
		Short:  "Start background processes for the agent",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(*cobra.Command, []string) error { return supervise.Run(processors) },
	}
	cmd.Flags().IntSliceVar(&processors, supervise.ProcessorFlag, nil, "a processor for what it starts; repeatable")
	return cmd
}

func installCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "install DIR",
		Short: "Copy this program to DIR",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			return install.Install(self, args[0])
		},
	}
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			v := version
			if info, ok := debug.ReadBuildInfo(); v == "" && ok {
				v = info.Main.Version
			}
			fmt.Fprintln(cmd.OutOrStdout(), v)
		},
	}
}
