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
	flag.StringVar(&options.only, "only", "", "name of the one measure to run and print: no file is written")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	exitOn(run(ctx, options))
}

type options struct {
	image, json, page, profiles, only string
}

// roles are what this program is when it starts itself, as a process apart.
var roles = map[string]func(arguments []string) error{
	stockArgument: func([]string) error { return serveStock() },
	plainArgument: func(arguments []string) error { return sendPlain(arguments[0], arguments[1]) },
	shellArgument: func([]string) error { return serveShell() },
}

// measures are all of them, in this order. The memory of idle processes comes
// before they have worked.
var measures = []struct {
	name    string
	measure func(context.Context, *bench) ([]result, error)
}{
	{"gateway-memory", gatewayMemory},
	{"live", live},
	{"agent", agentAlone},
	{"output", output},
	{"transfer", transfer},
	{"read-memory", readMemory},
	{"cold", coldStart},
	{"agent-memory", agentMemory},
}

var errGoalMissed = errors.New("a goal was missed; see MISSED above")

// run measures everything on one set-up and reports it.
func run(ctx context.Context, options options) (err error) {
	b, err := setUp(ctx, options.image, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.tearDown()) }()

	var results []result
	for _, m := range measures {
		if options.only != "" && options.only != m.name {
			continue
		}
		measured, err := m.measure(ctx, b)
		if err != nil {
			return err
		}
		for _, r := range measured {
			fmt.Println(r.line())
		}
		results = append(results, measured...)
	}
	if options.only != "" {
		return verdict(results)
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
	return verdict(results)
}

// verdict is an error if a goal was missed, or nothing was measured.
func verdict(results []result) error {
	switch {
	case len(results) == 0:
		return errors.New("no measure has this name")
	case slices.ContainsFunc(results, func(r result) bool { return !r.OK }):
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
