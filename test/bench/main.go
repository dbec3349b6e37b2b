// Bench measures Berth against its peers in one run and prints ratios: absolute
// times say more about the machine than about Berth. It writes bench.json (one
// row per measure) and docs/performance.md (the same for people), and exits
// non-zero when a goal is missed.
//
// It needs the cluster of KUBECONFIG with Berth installed, and must run where
// pod and service addresses can be reached: a forwarded port would be measured
// with what is behind it. On the local cluster: hack/bin/cluster exec -- bin/bench.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
)

func main() {
	if len(os.Args) > 1 {
		if serve, ok := roles[os.Args[1]]; ok {
			exitOn(serve(os.Args[2:]))
			return
		}
	}
	options := options{}
	flag.StringVar(&options.image, "image", "ghcr.io/berth-dev/sandbox-small:dev", "image of the sandboxes")
	flag.StringVar(&options.json, "json", "bench.json", "file for the rows")
	flag.StringVar(&options.page, "page", "docs/performance.md", "file for the page")
	flag.StringVar(&options.profiles, "profiles", "", "directory of the CPU profiles gateway.cpu and agent.cpu, for the page")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	exitOn(run(ctx, options))
}

type options struct {
	image, json, page, profiles string
}

// roles are what this program is when it starts itself, as a process apart.
var roles = map[string]func(arguments []string) error{
	stockArgument: func([]string) error { return serveStock() },
	plainArgument: func(arguments []string) error { return sendPlain(arguments[0]) },
	shellArgument: func([]string) error { return serveShell() },
}

var errGoalMissed = errors.New("a goal was missed; see MISSED above")

// run measures everything on one set-up and reports it.
func run(ctx context.Context, options options) (err error) {
	b, err := setUp(ctx, options.image)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.tearDown()) }()

	var results []result
	for _, measure := range []func(context.Context, *bench) ([]result, error){gatewayMemory, live, agentAlone, output, coldStart, agentMemory} {
		measured, err := measure(ctx, b)
		if err != nil {
			return err
		}
		for _, r := range measured {
			fmt.Println(r.line())
		}
		results = append(results, measured...)
	}
	spent, err := whereTimeGoes(ctx, b)
	if err != nil {
		return err
	}
	if err := spent.readProfiles(options.profiles); err != nil {
		return err
	}
	if err := writeReports(options, b, results, spent); err != nil {
		return err
	}
	if missed := slices.ContainsFunc(results, func(r result) bool { return !r.OK }); missed {
		return errGoalMissed
	}
	return nil
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
