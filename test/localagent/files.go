package localagent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/artifact"
	"github.com/berth-dev/berth/sandbox-agent/client"
	"github.com/berth-dev/berth/sandbox-agent/httpapi"
	"github.com/berth-dev/berth/sandbox-agent/shell"
	"github.com/berth-dev/berth/sandbox-agent/token"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// Files is the part of an agent that holds artifacts, in this process: the agent's
// own code and tokens, with a time that a test moves. It runs no command.
type Files struct {
	Pod  client.Pod
	Port int
	Key  []byte // as Agent's

	store  *artifact.Store
	server *http.Server
	served chan error
}

// StartFiles serves the artifacts of workspace.
func StartFiles(workspace string, clock artifact.Clock) (*Files, error) {
	key, _, public, err := newSigner()
	if err != nil {
		return nil, err
	}
	keys, err := token.ParseKeys([]byte(public))
	if err != nil {
		return nil, err
	}
	f := &Files{Pod: client.Pod{Namespace: "sandboxes", UID: "pod-1"}, Key: key, served: make(chan error, 1)}
	if f.store, err = artifact.NewStore(workspace, []string{workspace, os.TempDir()}, clock); err != nil {
		return nil, err
	}
	gate := httpapi.Signed{Verifier: token.NewVerifier(token.Audience(f.Pod.Namespace, f.Pod.UID), keys, time.Now)}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, f.store.Close())
	}
	address := netip.MustParseAddrPort(listener.Addr().String())
	f.Pod.IP, f.Port = address.Addr(), int(address.Port())
	f.server = &http.Server{Handler: httpapi.New(noCommands{}, f.store, gate, slog.New(slog.DiscardHandler)), ReadHeaderTimeout: time.Minute}
	go func() { f.served <- f.server.Serve(listener) }()
	return f, nil
}

// Stop waits for readers, and tells what went wrong.
func (f *Files) Stop() error {
	err := f.server.Shutdown(context.Background())
	if served := <-f.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("serve: %w", served))
	}
	return errors.Join(err, f.store.Close())
}

// noCommands is a shell that runs nothing.
type noCommands struct{}

func (noCommands) Kind() string                           { return wire.ShellBash }
func (noCommands) Setenv(context.Context, []string) error { return nil }
func (noCommands) Run(context.Context, shell.Command) (shell.Result, error) {
	return shell.Result{}, errors.New("this agent runs no commands")
}
