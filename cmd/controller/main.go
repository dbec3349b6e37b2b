// Command berth-controller gives each Sandbox its pod.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/berth-dev/berth/controllers"
)

// leaseName is the Lease that the leader holds; see the RBAC markers of package controllers.
const leaseName = "berth-controller"

// version is set by the linker.
var version = "dev"

var logLevels = map[string]zapcore.Level{
	"debug": zapcore.DebugLevel, "info": zapcore.InfoLevel, "error": zapcore.ErrorLevel,
}

func main() {
	if err := newCommand().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "berth-controller:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	o := &options{}
	command := &cobra.Command{
		Use:           "berth-controller",
		Short:         "Give each Sandbox its pod",
		Version:       version,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := o.Validate(); err != nil {
				return err
			}
			return run(command.Context(), o)
		},
	}
	o.BindFlags(command.Flags())
	return command
}

func run(ctx context.Context, o *options) error {
	logger := zap.New(zap.Level(logLevels[o.logLevel]))
	ctrl.SetLogger(logger)
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	config = controllers.Unthrottled(config)
	config.UserAgent = "berth-controller/" + version
	mgr, err := newManager(config, o, logger)
	if err != nil {
		return err
	}
	with, err := o.controllerOptions()
	if err != nil {
		return err
	}
	if err := controllers.Register(ctx, mgr, with); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func newManager(config *rest.Config, o *options, logger logr.Logger) (manager.Manager, error) {
	scheme, err := controllers.Scheme()
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, controllers.Configure(manager.Options{
		Scheme:                        scheme,
		Logger:                        logger,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              leaseName,
		LeaderElectionNamespace:       o.namespace,
		LeaderElectionReleaseOnCancel: true, // main returns as soon as the manager does
		Metrics:                       metricsserver.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress:        o.healthAddress,
	}, o.namespace))
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	return mgr, mgr.AddReadyzCheck("ping", healthz.Ping)
}
