// Command gateway is Berth's MCP and HTTP front: see docs/gateway.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/berth-dev/berth/gateway"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// version is set by the linker.
var version = "dev"

type options struct {
	gateway    gateway.Options
	kubeconfig string
	logLevel   slog.Level
	version    bool
}

func (o *options) bindFlags(fs *flag.FlagSet) {
	o.gateway.BindFlags(fs)
	fs.StringVar(&o.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig of the cluster; the pod's own service account if empty")
	fs.TextVar(&o.logLevel, "log-level", slog.LevelInfo, "least level that is logged: DEBUG, INFO, WARN or ERROR")
	fs.BoolVar(&o.version, "version", false, "print the version and exit")
}

func main() {
	var o options
	fs := flag.NewFlagSet("berth-gateway", flag.ContinueOnError)
	o.bindFlags(fs)
	err := fs.Parse(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		os.Exit(2)
	case fs.NArg() > 0:
		fmt.Fprintf(os.Stderr, "berth-gateway: unexpected argument %q; it takes flags only\n", fs.Arg(0))
		os.Exit(2)
	case o.version:
		fmt.Println(version)
		return
	}
	if err := o.gateway.Validate(); err != nil {
		fmt.Fprintf(os.Stderr, "berth-gateway: %v\n", err)
		os.Exit(2)
	}
	if err := run(&o); err != nil {
		fmt.Fprintf(os.Stderr, "berth-gateway: %v\n", err)
		os.Exit(1)
	}
}

// gcPercent trades some memory, of which an idle gateway has a few MiB, for fewer
// collections: MCP makes half a megabyte of garbage for each call.
const gcPercent = 200

func run(o *options) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: o.logLevel}))
	klog.SetLogger(logr.FromSlogHandler(log.Handler()))

	config, err := restConfig(o.kubeconfig)
	if err != nil {
		return err
	}
	config.UserAgent = "berth-gateway/" + version
	c, err := gateway.NewClient(config)
	if err != nil {
		return err
	}
	g, err := gateway.New(o.gateway, c, client.Options{}, version, log)
	if err != nil {
		return err
	}
	return g.Run(ctx)
}

func restConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("no cluster: %w; give --kubeconfig outside of one", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	return config, nil
}
