// Package standalone runs sessions on this machine, without a cluster, for people
// who develop against the gateway. Each is a berth-agent in PID and mount
// namespaces of its own behind a Unix socket, and its workspace is in a temporary
// folder. All above looks the same as with pods: a record for each session, signed
// requests, and an agent that is told its session.
//
// It is no security boundary: commands run as the user who started the gateway,
// with that user's files and network.
package standalone

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// Options of Sessions.
type Options struct {
	// Agent is the berth-agent; empty looks for it.
	Agent string
	// Max is how many sessions there may be at a time.
	Max int
	// ReadyTimeout is how long a call waits for its session.
	ReadyTimeout time.Duration
	// ArtifactStore is where exports go; empty is the sandbox.
	ArtifactStore string
	// Records are where what is known of the sessions is kept.
	Records *session.Store
	// Observe is that of session.Options: cold is what started something.
	Observe func(state, result string, took time.Duration)
	Log     *slog.Logger
	// Out is where Welcome writes.
	Out io.Writer
}

// Sessions are those of this gateway, which is the only one that has them.
type Sessions struct {
	options  Options
	agent    string
	folder   *folder
	launcher *launcher
	signer   *client.Signer
	client   *client.Client
	// startTimeout is how long an agent may take to answer.
	startTimeout time.Duration

	mu     sync.Mutex
	all    map[session.Key]*sandbox
	closed bool
	// work is what ends a session.
	work sync.WaitGroup

	sockets sync.Map // of pod UIDs, their paths
}

// New finds the agent and makes nothing yet.
func New(o Options) (*Sessions, error) {
	if err := supported(); err != nil {
		return nil, err
	}
	agent, err := find(o.Agent)
	if err != nil {
		return nil, err
	}
	key, err := client.GenerateKey()
	if err != nil {
		return nil, err
	}
	signer, err := client.NewSigner(map[string][]byte{"standalone.pem": key})
	if err != nil {
		return nil, err
	}
	s := &Sessions{options: o, agent: agent, signer: signer, startTimeout: startTimeout, all: make(map[session.Key]*sandbox)}
	s.client = client.New(signer, client.Options{Socket: s.Socket, Timeout: startTimeout})
	return s, nil
}

// Signer signs requests to the agents.
func (s *Sessions) Signer() *client.Signer { return s.signer }

// Socket is the path of the socket of an agent.
func (s *Sessions) Socket(podUID string) string {
	path, ok := s.sockets.Load(podUID)
	if !ok {
		return "" // which nobody listens on
	}
	return path.(string)
}

// trial names the session that Start tries. No caller can.
var trial = session.Key{Name: "(trial)"}

// Start makes the temporary folder, removes those of gateways that were killed,
// and starts a session and ends it again: a machine that can't run any is to say
// so now.
func (s *Sessions) Start(ctx context.Context) error {
	s.options.Log.Warn("STANDALONE MODE IS NO SECURITY BOUNDARY: commands run as the user who started the gateway, with that user's files and network")
	var err error
	if s.folder, err = makeFolder(s.options.Log); err != nil {
		return err
	}
	s.launcher = newLauncher()
	b := s.newSandbox(trial, "")
	_, err = b.ready(ctx, "")
	s.mu.Lock()
	b.ending = true
	s.mu.Unlock()
	var failed *session.NotReadyError
	if errors.As(err, &failed) {
		err = fmt.Errorf("sessions can't run on this machine: %s", failed.Message)
	}
	return errors.Join(err, b.end())
}

// Run returns when ctx has ended, and then every agent and the temporary folder are
// gone.
func (s *Sessions) Run(ctx context.Context) {
	<-ctx.Done()
	s.mu.Lock()
	s.closed = true
	for _, b := range s.all {
		s.endLocked(b)
	}
	s.mu.Unlock()
	s.work.Wait()
	s.client.Close()
	if s.folder == nil {
		return // it never started
	}
	s.launcher.close()
	if err := s.folder.close(); err != nil {
		s.options.Log.Warn("Temporary folder could not be removed; the next gateway tries again", "error", err)
	}
}

// begin runs work that the end of the gateway waits for, if that has not begun.
func (s *Sessions) begin(work func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.work.Go(work)
	}
	return !s.closed
}

// shortage is why a session is not made.
func (s *Sessions) shortage(key session.Key) error {
	return &session.NotReadyError{Key: key, Reason: "TooManySessions", Message: fmt.Sprintf(
		"this gateway has %d sessions, which is all that --max-sessions lets it have: end one with DELETE /sessions/{id}", s.options.Max)}
}
