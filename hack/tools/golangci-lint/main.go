// Command golangci-lint is golangci-lint with kube-api-linter built in, so that
// one pinned binary runs every check.
//
// It is golangci-lint's own main plus an import: kube-api-linter registers
// itself as a module plugin.
package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"github.com/golangci/golangci-lint/v2/pkg/commands"
	"github.com/golangci/golangci-lint/v2/pkg/exitcodes"

	_ "sigs.k8s.io/kube-api-linter"
)

const lintModule = "github.com/golangci/golangci-lint/v2"

func main() {
	if err := commands.Execute(buildInfo()); err != nil {
		fmt.Fprintf(os.Stderr, "golangci-lint ended with an error: %v\n", err)
		os.Exit(exitcodes.Failure)
	}
}

// buildInfo names the golangci-lint version that go.mod pins.
func buildInfo() commands.BuildInfo {
	info := commands.BuildInfo{Version: "unknown", Commit: "unknown", Date: "unknown"}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	info.GoVersion = build.GoVersion
	for _, dep := range build.Deps {
		if dep.Path == lintModule {
			info.Version = strings.TrimPrefix(dep.Version, "v")
			info.Commit = dep.Sum
		}
	}
	return info
}
