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
	"runtime"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/berth-dev/berth/gateway"
	"github.com/berth-dev/berth/gateway/tracing"
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
	if err := errors.Join(o.gateway.Complete(fs), o.gateway.Validate()); err != nil {
		fmt.Fprintf(os.Stderr, "berth-gateway: %v\n", err)
		os.Exit(2)
	}
	if err := run(&o); err != nil {
		fmt.Fprintf(os.Stderr, "berth-gateway: %v\n", err)
		os.Exit(1)
	}
}

// headroom is how much garbage the gateway may make between two collections, on
// top of as much as it holds. MCP makes half a megabyte for each call, and a small
// heap would be collected every 16 calls, which is a quarter of their time.
const headroom = 32 << 20 // bytes

func run(o *options) error {
	// Memory that nothing touches takes none, but counts as held. A larger GOGC
	// would multiply what thousands of sessions hold instead.
	untouched := make([]byte, headroom)
	defer runtime.KeepAlive(untouched)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: o.logLevel}))
	klog.SetLogger(logr.FromSlogHandler(log.Handler()))

	traces, err := tracing.NewProvider(ctx, version)
	if err != nil {
		return err
	}
	if traces != nil {
		o.gateway.Traces = traces
		otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("Traces could not be sent", "error", err) }))
		defer flush(traces)
	}
	g, err := newGateway(o, log)
	if err != nil {
		return err
	}
	return g.Run(ctx)
}

func newGateway(o *options, log *slog.Logger) (*gateway.Gateway, error) {
	if o.gateway.Standalone.Enabled {
		o.gateway.Standalone.Out = os.Stdout
		return gateway.NewStandalone(o.gateway, version, log)
	}
	config, err := restConfig(o.kubeconfig)
	if err != nil {
		return nil, err
	}
	config.UserAgent = "berth-gateway/" + version
	c, err := gateway.NewClient(config)
	if err != nil {
		return nil, err
	}
	return gateway.New(o.gateway, c, client.Options{}, version, log)
}

// flushTime is what the last spans get to be sent.
const flushTime = 5 * time.Second

func flush(traces *sdktrace.TracerProvider) {
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	if err := traces.Shutdown(ctx); err != nil {
		otel.Handle(err)
	}
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
