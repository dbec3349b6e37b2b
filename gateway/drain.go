package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// closeWait is what calls that outlast a shutdown get to tell their callers.
const closeWait = 5 * time.Second

// leaving makes each answer of a gateway that drains the last of its connection.
// Clients then connect anew, and elsewhere: those that keep a connection through a
// load balancer of connections would send their next call just when it is closed.
func (g *Gateway) leaving(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.draining.Err() != nil {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// shutdown drains. ctx has ended by now.
func (g *Gateway) shutdown(main *http.Server) error {
	g.drain() // /readyz fails from now on
	g.log.Info("Began to drain", "delay", g.options.DrainDelay.String(), "timeout", g.options.ShutdownTimeout.String())
	if g.options.DrainDelay > 0 {
		// Load balancers need this long to notice; until then calls still come.
		<-time.After(g.options.DrainDelay)
	}
	timeout, cancel := context.WithTimeout(context.Background(), g.options.ShutdownTimeout)
	defer cancel()
	err := main.Shutdown(timeout)
	if errors.Is(err, context.DeadlineExceeded) {
		g.log.Warn("Cancelled the calls that outlasted the shutdown")
		g.end()
		last, cancel := context.WithTimeout(context.Background(), closeWait)
		defer cancel()
		if err = main.Shutdown(last); err != nil {
			err = errors.Join(err, main.Close())
		}
	}
	if err != nil {
		return fmt.Errorf("shut down: %w", err)
	}
	g.log.Info("Drained")
	return nil
}
