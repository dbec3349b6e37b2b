// Package localagent runs berth-agent on this machine for tests: the program as
// it is shipped, as PID 1 of a PID namespace of its own, so that whatever a
// command does, it does to that agent.
package localagent

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/berth-dev/berth/sandbox-agent/client"
	"github.com/berth-dev/berth/sandbox-agent/initproc"
)

// Options of an agent.
type Options struct {
	Workspace string // an existing directory
	Environ   []string
	Limits    client.Limits
	// FileRoots are what the file tools reach besides the workspace.
	FileRoots []string
	// Hide are files that the agent finds empty, such as a bash. That needs root.
	Hide []string
	// Within are shell commands that run in the agent's namespaces before it does, and
	// leave it what a process inherits. What they mount is the agent's alone.
	Within []string
	// NoLinks: the kernel refuses it hard links.
	NoLinks bool
}

// Agent is one running agent, with a session bound.
type Agent struct {
	*Process
	Client *client.Client
	Pod    client.Pod
	Port   int
	Key    []byte // what signs for it: KeyID, as an entry of the signing key Secret
}

// KeyID names the key of every agent.
const KeyID = "test"

// Start starts the agent as it is shipped and binds a session.
func Start(ctx context.Context, o Options) (*Agent, error) {
	program, err := Program()
	if err != nil {
		return nil, err
	}
	key, signer, keys, err := newSigner()
	if err != nil {
		return nil, err
	}
	cmd, err := command(program, o)
	if err != nil {
		return nil, err
	}
	cmd.Env = append(cmd.Env, client.EnvNamespace+"=sandboxes", client.EnvPodUID+"=pod-1", client.EnvPublicKeys+"="+keys)
	p, err := Launch(cmd)
	if err != nil {
		return nil, err
	}
	a := &Agent{Process: p, Port: int(p.Address.Port()), Key: key}
	a.Client = client.New(signer, client.Options{Port: a.Port, AllowLoopback: true})
	a.Pod = client.Pod{Namespace: "sandboxes", UID: "pod-1", IP: p.Address.Addr()}
	if err := a.Client.Bind(ctx, a.Pod, client.Session{UID: "sandbox-1", Limits: o.Limits, FileRoots: o.FileRoots}); err != nil {
		a.Stop()
		return nil, fmt.Errorf("bind session: %w\n%s", err, a.Log)
	}
	return a, nil
}

// newSigner makes an agent's key, what signs with it, and the keys that the agent
// believes.
func newSigner() (key []byte, signer *client.Signer, keys string, err error) {
	if key, err = client.GenerateKey(); err != nil {
		return nil, nil, "", err
	}
	if signer, err = client.NewSigner(map[string][]byte{KeyID + ".pem": key}); err != nil {
		return nil, nil, "", err
	}
	keys, err = signer.PublicKeys()
	return key, signer, keys, err
}

// hiding mounts nothing over its arguments up to --, and becomes what follows.
const hiding = `mount --make-rprivate / || exit; while [ "$1" != -- ]; do mount --bind /dev/null "$1" || exit; shift; done; shift; exec "$@"`

func command(program string, o Options) (*exec.Cmd, error) {
	argv := []string{program, "serve", "--listen=127.0.0.1:0", "--workspace=" + o.Workspace}
	environ := o.Environ
	if o.NoLinks {
		filtered, more, err := withoutLinks(argv)
		if err != nil {
			return nil, err
		}
		argv, environ = filtered, append(slices.Clone(environ), more)
	}
	if len(o.Hide) > 0 {
		argv = slices.Concat([]string{"/bin/sh", "-c", hiding, "sh"}, o.Hide, []string{"--"}, argv)
	}
	if len(o.Within) > 0 {
		script := strings.Join(append([]string{"mount --make-rprivate /"}, append(o.Within, `exec "$0" "$@"`)...), " && ")
		argv = append([]string{"/bin/sh", "-c", script}, argv...)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = environ
	initproc.Isolate(cmd)
	return cmd, nil
}

// Run runs a command to its result.
func (a *Agent) Run(ctx context.Context, r client.ExecRequest) (*client.ExecResult, error) {
	result, err := a.Client.Exec(ctx, a.Pod, r, 0)
	if err != nil {
		return nil, fmt.Errorf("exec %.200q: %w\n%s", r.Command, err, a.Log)
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

// Stop ends the agent as Process.Stop does, and closes its client.
func (a *Agent) Stop() {
	a.Client.Close()
	a.Process.Stop()
}
