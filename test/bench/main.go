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
	if len(os.Args) == 2 && os.Args[1] == stockArgument {
		exitOn(serveStock())
		return
	}
	options := options{}
	flag.StringVar(&options.image, "image", "ghcr.io/berth-dev/sandbox-small:dev", "image of the sandboxes")
	flag.StringVar(&options.json, "json", "bench.json", "file for the rows")
	flag.StringVar(&options.page, "page", "docs/performance.md", "file for the page")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	exitOn(run(ctx, options))
}

type options struct {
	image, json, page string
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
	for _, measure := range []func(context.Context, *bench) ([]result, error){live, agentAlone, coldStart} {
		measured, err := measure(ctx, b)
		if err != nil {
			return err
		}
		for _, r := range measured {
			fmt.Println(r.line())
		}
		results = append(results, measured...)
	}
	if err := writeReports(options, b, results); err != nil {
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
