package standalone

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	berthv1alpha1 "github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// Reasons why a session is not ready.
const (
	reasonStarting   = "AgentStarting"
	reasonStartError = "AgentStartError"
	reasonEnded      = "AgentEnded"
)

// sandbox is one session: a folder, and mostly an agent. Its agent is to a pod's
// container what its folder is to the pod: it may end and be started again, and
// finds its files.
type sandbox struct {
	sessions *Sessions
	key      session.Key
	owner    string
	uid      types.UID

	// turn is held by who starts or ends something; dir and agent are theirs.
	turn  chan struct{}
	dir   string
	agent *agent

	// ending and last are under the lock of sessions. last is how the agent ended
	// that was there before.
	ending bool
	last   *berthv1alpha1.Termination
	// gone is closed when nothing of it is left.
	gone chan struct{}
}

func (s *Sessions) newSandbox(key session.Key, owner string) *sandbox {
	return &sandbox{
		sessions: s, key: key, owner: owner, uid: types.UID(random()),
		turn: make(chan struct{}, 1), gone: make(chan struct{}),
	}
}

func random() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// ready returns the record of a running agent, which it starts if need be. A
// caller that gives up leaves the start to those who come after.
func (b *sandbox) ready(ctx context.Context, notPod string) (*session.Record, error) {
	select {
	case b.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	type outcome struct {
		rec *session.Record
		err error
	}
	done := make(chan outcome, 1)
	if !b.sessions.begin(func() {
		defer func() { <-b.turn }()
		rec, err := b.run(notPod)
		done <- outcome{rec, err}
	}) {
		<-b.turn
		return nil, errClosed
	}
	select {
	case o := <-done:
		return o.rec, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// run is ready for who has the turn.
func (b *sandbox) run(notPod string) (*session.Record, error) {
	if b.agent != nil && b.agent.runs() && b.agent.uid != notPod {
		return b.announce(b.agent)
	}
	if b.agent != nil {
		b.agent.stop() // it takes no more calls
	}
	err := b.start()
	if err == nil {
		return b.announce(b.agent)
	}
	failed := &session.NotReadyError{Key: b.key, Reason: reasonStartError, Message: err.Error()}
	if b.agent == nil && b.key != trial {
		// It never ran: there is nothing to keep, and it takes no room.
		b.sessions.mu.Lock()
		b.sessions.endLocked(b)
		b.sessions.mu.Unlock()
	}
	return nil, failed
}

// start starts an agent, in the folder that the one before had.
func (b *sandbox) start() error {
	if b.dir == "" {
		dir, err := b.sessions.folder.add()
		if err != nil {
			return err
		}
		b.dir = dir
	}
	a, err := b.sessions.launch(b)
	if err != nil {
		return err
	}
	b.agent = a
	b.sessions.options.Log.Info("Agent started", "session", b.key.Name, "workspace", filepath.Join(b.dir, "workspace"))
	return nil
}

// ended is told of the end of an agent, however it came, before anyone else.
func (b *sandbox) ended(a *agent) {
	b.sessions.sockets.Delete(a.uid)
	b.sessions.mu.Lock()
	a.over = true
	served := a.served
	if served {
		b.last = &berthv1alpha1.Termination{Reason: reasonEnded, Message: a.how(), Time: metav1.NewTime(time.Now())}
	}
	b.sessions.mu.Unlock()
	if !served {
		return // launch tells
	}
	if _, err := b.announce(a); err == nil {
		b.sessions.options.Log.Warn("Agent ended; the session's next call starts it again", "session", b.key.Name, "how", a.how(), "said", a.said.String())
	}
}

// announce makes known how the session is with its agent a. It returns errEnded if
// it is being ended.
func (b *sandbox) announce(a *agent) (*session.Record, error) {
	b.sessions.mu.Lock()
	defer b.sessions.mu.Unlock()
	if b.ending {
		return nil, errEnded
	}
	rec := &session.Record{
		Key: b.key, UID: b.uid, Owner: b.owner, Template: berthv1alpha1.DefaultTemplateName,
		CreatedByGateway: true, Observed: true,
		Ready: true, Reason: berthv1alpha1.ReasonReady,
		PodUID: a.uid, PodGeneration: 1, Termination: b.last,
		ArtifactStore: b.sessions.options.ArtifactStore,
	}
	if a.over {
		rec.Ready, rec.Reason, rec.Message = false, reasonEnded, a.how()
	}
	if b.key != trial {
		b.sessions.options.Records.Set(rec)
	}
	return rec, nil
}

// end ends the agent and removes the folder.
func (b *sandbox) end() error {
	b.turn <- struct{}{}
	defer func() { <-b.turn }()
	if b.agent != nil {
		b.agent.stop()
	}
	if b.dir == "" {
		return nil
	}
	return remove(b.dir)
}

// environ is an agent's environment, and so its shell's. Of this gateway's it has
// what makes programs run and speak: what else is there may be secret.
func (b *sandbox) environ(podUID, keys string) []string {
	env := []string{
		client.EnvNamespace + "=" + namespaceOf(b.key), client.EnvPodUID + "=" + podUID, client.EnvPublicKeys + "=" + keys,
		"HOME=/workspace",
	}
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if name == "PATH" || name == "LANG" || name == "TZ" || strings.HasPrefix(name, "LC_") {
			env = append(env, kv)
		}
	}
	return env
}

// namespaceOf is never empty: an agent refuses to start without.
func namespaceOf(key session.Key) string {
	if key.Namespace == "" {
		return "standalone"
	}
	return key.Namespace
}
