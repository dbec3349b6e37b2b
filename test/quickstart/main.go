// Quickstart shows Berth from end to end on a cluster that has it installed: a
// Sandbox, a command through the MCP gateway, a file that the session made,
// exported and read back as an MCP resource. It exits non-zero unless the bytes
// read are those that the session wrote.
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

func main() {
	sample := flag.String("sample", "config/samples/sandbox.yaml", "file with the Sandbox to apply")
	namespace := flag.String("namespace", "sandboxes", "namespace of the Sandbox, if the file names none")
	timeout := flag.Duration("timeout", 3*time.Minute, "time for everything")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	if err := run(ctx, *sample, *namespace); err != nil {
		fmt.Fprintln(os.Stderr, "\nquickstart:", err)
		os.Exit(1)
	}
}
