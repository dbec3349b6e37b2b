// Package localagent runs berth-agent on this machine for tests: the program as
// it is shipped, as PID 1 of a PID namespace of its own, so that whatever a
// command does, it does to that agent.
package localagent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/client"
	"github.com/berth-dev/berth/sandbox-agent/initproc"
)

// Build builds the agent as it is shipped into dir and returns its path.
func Build(dir string) (path string, err error) {
	path = filepath.Join(dir, "berth-agent")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, "github.com/berth-dev/berth/sandbox-agent")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the agent: %w: %s", err, out)
	}
	return path, nil
}

// Options of an agent.
type Options struct {
	Program   string // what Build returned
	Workspace string // an existing directory
	Environ   []string
	Limits    client.Limits
	// Hide are files that the agent finds empty, such as a bash. That needs root.
	Hide []string
}

// Agent is one running agent, with a session bound.
type Agent struct {
	Client *client.Client
	Pod    client.Pod
	Port   int
	PID    int    // of the agent, as this process sees it
	Key    []byte // what signs for it: KeyID, as an entry of the signing key Secret

	cmd    *exec.Cmd
	exited chan struct{}
	log    log
}

// KeyID names the key of every agent.
const KeyID = "test"

const startTime = 20 * time.Second

// Start starts an agent and binds a session.
func Start(ctx context.Context, o Options) (*Agent, error) {
	key, err := client.GenerateKey()
	if err != nil {
		return nil, err
	}
	signer, err := client.NewSigner(map[string][]byte{KeyID + ".pem": key})
	if err != nil {
		return nil, err
	}
	keys, err := signer.PublicKeys()
	if err != nil {
		return nil, err
	}
	a := &Agent{exited: make(chan struct{}), Key: key}
	a.cmd = command(o)
	a.cmd.Env = append(a.cmd.Env, client.EnvNamespace+"=sandboxes", client.EnvPodUID+"=pod-1", client.EnvPublicKeys+"="+keys)
	address, err := a.start()
	if err != nil {
		return nil, err
	}
	a.Port = int(address.Port())
	a.Client = client.New(signer, client.Options{Port: a.Port, AllowLoopback: true})
	a.Pod = client.Pod{Namespace: "sandboxes", UID: "pod-1", IP: address.Addr()}
	if err := a.Client.Bind(ctx, a.Pod, client.Session{UID: "sandbox-1", Limits: o.Limits}); err != nil {
		a.Stop()
		return nil, fmt.Errorf("bind session: %w\n%s", err, a.Log())
	}
	return a, nil
}

// hiding mounts nothing over its arguments up to --, and becomes what follows.
const hiding = `mount --make-rprivate / || exit; while [ "$1" != -- ]; do mount --bind /dev/null "$1" || exit; shift; done; shift; exec "$@"`

func command(o Options) *exec.Cmd {
	argv := []string{o.Program, "serve", "--listen=127.0.0.1:0", "--workspace=" + o.Workspace}
	if len(o.Hide) > 0 {
		argv = slices.Concat([]string{"/bin/sh", "-c", hiding, "sh"}, o.Hide, []string{"--"}, argv)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = o.Environ
	initproc.Isolate(cmd)
	return cmd
}

// start starts the program and returns where it listens.
func (a *Agent) start() (netip.AddrPort, error) {
	stderr, err := a.cmd.StderrPipe()
	if err != nil {
		return netip.AddrPort{}, err
	}
	if err := a.cmd.Start(); err != nil {
		return netip.AddrPort{}, fmt.Errorf("start the agent in a PID namespace: %w", err)
	}
	a.PID = a.cmd.Process.Pid
	listening := make(chan string, 1)
	go func() {
		defer close(a.exited)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			a.log.add(lines.Text())
			var entry struct{ Msg, Address string }
			if json.Unmarshal(lines.Bytes(), &entry) == nil && entry.Msg == "Agent listened" {
				listening <- entry.Address
			}
		}
		_ = a.cmd.Wait() // the log says why it ended
	}()
	timer := time.NewTimer(startTime)
	defer timer.Stop()
	select {
	case s := <-listening:
		return netip.ParseAddrPort(s)
	case <-timer.C:
		a.Stop()
		return netip.AddrPort{}, fmt.Errorf("the agent did not listen within %v:\n%s", startTime, a.Log())
	case <-a.exited:
		return netip.AddrPort{}, fmt.Errorf("the agent ended at once:\n%s", a.Log())
	}
}

// Run runs a command to its result.
func (a *Agent) Run(ctx context.Context, r client.ExecRequest) (*client.ExecResult, error) {
	result, err := a.Client.Exec(ctx, a.Pod, r, 0)
	if err != nil {
		return nil, fmt.Errorf("exec %.200q: %w\n%s", r.Command, err, a.Log())
	}
	return result, nil
}

// Output runs a command that must succeed and returns its standard output.
func (a *Agent) Output(ctx context.Context, command string) (string, error) {
	r, err := a.Run(ctx, client.ExecRequest{Command: command})
	if err == nil && (r.ExitCode != 0 || r.Notice != "") {
		err = fmt.Errorf("%.200q: %+v", command, *r)
	}
	if err != nil {
		return "", err
	}
	return r.Stdout, nil
}

// Stop kills the agent, and all that runs in its PID namespace with it.
func (a *Agent) Stop() {
	if a.Client != nil {
		a.Client.Close()
	}
	err := a.cmd.Process.Kill()
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		a.log.add(err.Error())
	}
	<-a.exited
}

// Log is what the agent logged so far.
func (a *Agent) Log() string { return a.log.String() }

// log keeps what an agent says.
type log struct {
	mu   sync.Mutex
	text []byte
}

func (l *log) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(append(l.text, line...), '\n')
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}
