package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/background"
	"github.com/berth-dev/berth/sandbox-agent/httpapi"
	"github.com/berth-dev/berth/sandbox-agent/initproc"
	"github.com/berth-dev/berth/sandbox-agent/process"
	"github.com/berth-dev/berth/sandbox-agent/shell"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

const (
	// drainTime is what running commands get at TERM, answerTime what their
	// answers may take then, and endTime the kill of what is left: together less
	// than a pod's grace of 5 s.
	drainTime  = 3 * time.Second
	answerTime = time.Second
	endTime    = 500 * time.Millisecond

	headerTime = 10 * time.Second
	// idleTime is longer than the client's, so that it is never the agent
	// that closes a connection which a request is about to use.
	idleTime  = 2 * time.Minute
	maxHeader = 16 << 10
)

// Run serves until TERM and returns the process's exit code.
func Run(o Options, environ []string) (int, error) {
	if err := o.Complete(); err != nil {
		return 0, err
	}
	reexecuted, err := initproc.Reexecuted()
	if err != nil {
		return 0, err
	}
	switch {
	case o.SessionDir != "" && !reexecuted:
		return initproc.Reexec(inherited())
	case o.SessionDir != "":
		if err := initproc.Root(o.SessionDir); err != nil {
			return 0, err
		}
	case o.InsecureNoAuth && !initproc.IsInit() && !reexecuted:
		return initproc.Reexec()
	}
	return run(o, environ)
}

// run serves until TERM. In an image without a shell it ends at once: a pod that
// can't do its work is to fail where its owner sees it.
func run(o Options, environ []string) (int, error) {
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	own, rest := split(environ)
	gate, err := newGate(o, own)
	if err != nil {
		return 0, err
	}
	term, err := initproc.Protect()
	if err != nil {
		return 0, err
	}
	initproc.ReserveThreads()
	limits, err := initproc.ReadLimits()
	if err != nil {
		return 0, err
	}
	reaper, err := process.NewReaper()
	if err != nil {
		return 0, err
	}
	defer reaper.Close()
	processors := separate(log, reaper)
	// Listening comes first, then what takes longer.
	socket, err := listen(o)
	if err != nil {
		return 0, fmt.Errorf("listen: %w", err)
	}
	defer socket.Close()
	spools := []string{o.Workspace, os.TempDir()}
	watch := watchMemory(log)
	sh, processes, supervisor := newShell(shell.Config{Reaper: reaper, Dir: o.Workspace, Environ: rest, RestoreLimits: limits.Restore, Memory: watch}, spools, processors)
	defer supervisor.Close()
	if sh.Kind() == wire.ShellNone && !o.InsecureNoAuth {
		log.Error("Agent ended", "error", noShell)
		return exitNoShell, tellNoShell(terminationLog)
	}
	defer guardMemory(log, watch, sh)()
	stores, err := openStores(o.Workspace, spools)
	if err != nil {
		return 0, err
	}
	api := httpapi.New(sh, stores.artifacts, gate, log)
	api.KeepProcesses(processes)
	stores.serve(api)
	if o.InsecureNoAuth {
		api.BindLocally()
	}
	failed := make(chan error, 1)
	server := newServer(guard{limits, failed}.handler(api), log)
	go func() { failed <- server.Serve(listener{socket, limits}) }()
	log.Info("Agent listened", "address", socket.Addr().String(), "shell", sh.Kind())

	select {
	case err := <-failed:
		return 0, fmt.Errorf("serve: %w", err)
	case <-term:
	}
	log.Info("Agent began to drain")
	return 0, end(api, server, stores, processes, sh)
}

// newGate lets in who has a token or, by hand, who is on this machine.
func newGate(o Options, own map[string]string) (httpapi.Gate, error) {
	if o.InsecureNoAuth {
		return httpapi.Local{Unix: o.Unix != ""}, nil
	}
	return signed(own)
}

func newServer(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}

// end lets running commands finish and background processes end, then ends
// everything else.
func end(api *httpapi.Server, server *http.Server, stores *stores, processes *background.Registry, sh *shell.Shell) error {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	var ending sync.WaitGroup
	ending.Go(func() { processes.End(ctx) })
	api.Drain(ctx)
	ending.Wait()
	ctx, cancel = context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	err := server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close() // a reader, or an upload, that is too slow
	}
	ctx, cancel = context.WithTimeout(context.Background(), endTime)
	defer cancel()
	err = errors.Join(err, stores.close(), sh.Close(ctx))
	processes.Close()
	return err
}
