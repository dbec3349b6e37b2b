package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Run serves until ctx ends, then drains: /readyz fails, after DrainDelay the
// port is closed, running calls finish within ShutdownTimeout, and what is left
// is cancelled, in the pods too. It returns nil after a drain.
func (g *Gateway) Run(ctx context.Context) error {
	listener, err := listen(g.options.Listen)
	if err != nil {
		return err
	}
	health, err := listen(g.options.HealthListen)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	return g.Serve(ctx, listener, health)
}

func listen(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w (is another process using the port?)", address, err)
	}
	return l, nil
}

// Serve is Run on listeners that are open already. It closes them.
func (g *Gateway) Serve(ctx context.Context, listener, health net.Listener) error {
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	defer running.Wait()
	defer g.agents.Close()
	defer stop()
	defer g.end()
	defer g.drain()
	running.Go(func() { g.backend.run(background) })
	running.Go(func() { g.stores.Run(background) })

	main := g.publicServer(background)
	if g.certificate != nil {
		main.TLSConfig = g.certificate.config()
		running.Go(func() { g.certificate.follow(background) })
	}
	side := &http.Server{
		Handler:           g.sideHandler(),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(g.log.Handler(), slog.LevelWarn),
	}
	failed := make(chan error, 2)
	running.Go(func() { failed <- serve(side, health) })
	defer side.Close()

	g.log.Info("Waiting for " + g.backend.waitsFor)
	// The port opens when there is something to serve with: a call that came
	// before would only be told to wait.
	if err := g.ready(ctx, failed); err != nil {
		return errors.Join(ignoreEnd(ctx, err), listener.Close())
	}
	close(g.loaded)
	running.Go(func() { failed <- serve(main, listener) })
	g.log.Info("Began to serve", "address", listener.Addr().String(), "health", health.Addr().String())
	g.backend.serving(listener.Addr())

	select {
	case err := <-failed:
		main.Close()
		return err
	case <-ctx.Done():
		return g.shutdown(main)
	}
}

// publicServer serves what callers ask. Its requests end with ctx.
func (g *Gateway) publicServer(ctx context.Context) *http.Server {
	return &http.Server{
		Handler:           g.leaving(g.handler),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		// Behind a proxy, a connection is that of many callers: an upload that waits for
		// its session may not take all that the connection has to receive with.
		HTTP2:       &http.HTTP2Config{MaxReceiveBufferPerStream: 256 << 10, MaxReceiveBufferPerConnection: 4<<20 - 1},
		ErrorLog:    slog.NewLogLogger(g.log.Handler(), slog.LevelWarn),
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
}

// ready waits until there is something to serve with.
func (g *Gateway) ready(ctx context.Context, failed <-chan error) error {
	loaded := make(chan error, 1)
	go func() { loaded <- g.backend.wait(ctx) }()
	select {
	case err := <-loaded:
		return err
	case err := <-failed:
		return err
	}
}

// ignoreEnd makes being told to stop while starting no failure.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func serve(s *http.Server, l net.Listener) error {
	serve := s.Serve
	if s.TLSConfig != nil {
		serve = func(l net.Listener) error { return s.ServeTLS(l, "", "") }
	}
	if err := serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	}
	return nil
}

// sideHandler answers /livez, which depends on nothing, /readyz and /metrics.
func (g *Gateway) sideHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if reason := g.unready(); reason != "" {
			http.Error(w, reason, http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(g.metrics.Registry, promhttp.HandlerOpts{}))
	return mux
}

func (g *Gateway) unready() string {
	if g.draining.Err() != nil {
		return "draining"
	}
	select {
	case <-g.loaded:
		return ""
	default:
		return "waiting for " + g.backend.waitsFor
	}
}
