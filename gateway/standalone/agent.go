package standalone

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

const (
	// startTimeout is how long an agent may take to answer.
	startTimeout = 20 * time.Second
	// stopTimeout is more than an agent needs to drain.
	stopTimeout = 8 * time.Second
)

// agent is one process of berth-agent, which has another one in namespaces.
type agent struct {
	// uid is its own: what was sent to one is not for the next.
	uid     string
	process *exec.Cmd
	said    *tail
	// exited is closed when it, and all in its namespaces, has ended, with err.
	exited chan struct{}
	err    error
	// served says that it has answered, over that it has ended; both are under the
	// lock of its sessions.
	served, over bool
}

// launch starts an agent for b and waits until it answers.
func (s *Sessions) launch(b *sandbox) (*agent, error) {
	keys, err := s.signer.PublicKeys()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(b.dir, "agent.sock")
	socket, err := listen(path)
	if err != nil {
		return nil, err
	}
	defer socket.Close() // the agent has it by then, or nobody
	a := &agent{uid: random(), said: &tail{}, exited: make(chan struct{})}
	a.process = exec.Command(s.agent, "serve", "--session-dir="+b.dir)
	a.process.Dir = "/"
	a.process.Env = b.environ(a.uid, keys)
	a.process.Stderr = a.said
	a.process.ExtraFiles = []*os.File{socket}
	a.process.SysProcAttr = attributes()
	if err := s.launcher.start(a.process); err != nil {
		return nil, fmt.Errorf("start %s: %w", s.agent, err)
	}
	s.sockets.Store(a.uid, path)
	s.work.Go(func() {
		a.err = a.process.Wait()
		b.ended(a)
		close(a.exited)
	})
	err = errors.Join(socket.Close(), s.answers(b, a))
	if err == nil && s.serves(a) {
		return a, nil
	}
	running := a.runs()
	a.stop()
	s.options.Log.Warn("Agent did not answer", "session", b.key.Name, "how", a.how(), "error", err)
	switch said := a.said.String(); {
	case said != "":
		return nil, fmt.Errorf("%s: %s", a.how(), said[strings.LastIndex(said, "\n")+1:])
	case running && errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("the agent did not answer within %s", s.startTimeout)
	default:
		return nil, fmt.Errorf("%s before it answered", a.how())
	}
}

// serves notes that a has answered, and tells whether it still runs.
func (s *Sessions) serves(a *agent) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.served = !a.over
	return a.served
}

// answers waits until the agent answers. It has its socket from the start, so a
// request waits there for it; if it ends, so does the request.
func (s *Sessions) answers(b *sandbox, a *agent) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.startTimeout)
	defer cancel()
	_, err := s.client.Health(ctx, client.Pod{Namespace: namespaceOf(b.key), UID: a.uid})
	return err
}

// listen returns a socket on which one listens that only this user may connect to:
// the directory is nobody else's.
func listen(path string) (*os.File, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("make the agent's socket: %w", err)
	}
	l.SetUnlinkOnClose(false)
	file, err := l.File()
	return file, errors.Join(err, l.Close())
}

// runs tells whether it has not ended.
func (a *agent) runs() bool {
	select {
	case <-a.exited:
		return false
	default:
		return true
	}
}

// stop ends it as a pod's end does, and returns when it has ended.
func (a *agent) stop() {
	_ = a.process.Process.Signal(syscall.SIGTERM) // fails only when it has ended
	timer := time.AfterFunc(stopTimeout, func() { _ = a.process.Process.Kill() })
	defer timer.Stop()
	<-a.exited
}

// how it ended.
func (a *agent) how() string {
	if a.err == nil {
		return "the agent ended"
	}
	return "the agent ended: " + a.err.Error()
}

// tail keeps the end of what an agent says.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// maxTail is how much is kept, in bytes.
const maxTail = 2 << 10

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[max(0, len(p)-maxTail):]...)
	t.text = t.text[max(0, len(t.text)-maxTail):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(strings.TrimSpace(string(t.text)), "\uFFFD")
}
