// Cluster runs a real Kubernetes on a bare Linux machine, from binaries that it
// builds itself. See README.md.
package main

import (
	"os"

	"github.com/berth-dev/berth/hack/cluster/commands"
)

func main() { os.Exit(commands.Execute(os.Args[1:])) }
