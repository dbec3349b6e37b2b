// Quickstart shows Berth from end to end on a cluster that has it installed: a
// Sandbox, a command through the MCP gateway, a file that the session made,
// exported and read back as an MCP resource, and one that was uploaded, worked on
// and read back. It exits non-zero unless the bytes read are those that were
// written.
//
// It uses the cluster of KUBECONFIG, reaches the gateway by a forwarded port, and
// leaves the Sandbox running.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

type options struct {
	sample, namespace, prefix string
	timeout                   time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.sample, "sample", "config/samples/sandbox.yaml", "file with the Sandbox to apply")
	flag.StringVar(&o.namespace, "namespace", "sandboxes", "namespace of the Sandbox, if the file names none")
	flag.StringVar(&o.prefix, "prefix", "", "what the commands that it suggests begin with, such as hack/bin/cluster exec --")
	flag.DurationVar(&o.timeout, "timeout", 3*time.Minute, "time for everything")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "\nquickstart:", err)
		os.Exit(1)
	}
}
