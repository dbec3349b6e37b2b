package main

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-dev/berth/sandbox-agent/client"
	"github.com/berth-dev/berth/sandbox-agent/initproc"
	"github.com/berth-dev/berth/test/localagent"
)

// actAsAgent makes the test binary behave as berth-agent. Each test starts it
// as PID 1 of a PID namespace of its own, so that whatever a command does, it
// does to that agent.
const actAsAgent = "BERTH_TEST_ACT_AS_AGENT"

func TestMain(m *testing.M) {
	if os.Getenv(actAsAgent) != "" {
		if os.Getenv(refuseLinks) != "" {
			if err := localagent.RefuseLinks(); err != nil {
				panic(err)
			}
		}
		stop := profileAgent()
		main()
		stop()
		os.Exit(0)
	}
	os.Exit(localagent.Main(m))
}

// agent is one running agent and a client of it.
type agent struct {
	client    *client.Client
	key       ed25519.PrivateKey
	pod       client.Pod
	workspace string
	url       string
	process   *os.Process
	exited    <-chan error // gives how it ended, and is closed then
	log       *localagent.Log
}

type agentOptions struct {
	namespace string
	podUID    string
	unbound   bool
	limits    client.Limits
	sandboxed []client.EnvVar // the session's environment
	environ   []string        // the container's
	args      []string
	root      string   // chroot into it: an image with nothing in it
	shipped   bool     // the program as it is shipped, not the test binary
	escalates bool     // asUser: setuid programs work
	within    []string // shell commands, as root in its namespaces, before it starts
}

// startAgent starts an agent with a session bound and stops it with the test.
func startAgent(t testing.TB, o agentOptions) *agent {
	t.Helper()
	a := newAgent(t, o)
	if !o.unbound {
		if err := a.client.Bind(t.Context(), a.pod, client.Session{UID: "sandbox-1", Env: o.sandboxed, Limits: o.limits}); err != nil {
			t.Fatalf("bind session: %v\n%s", err, a.log)
		}
	}
	return a
}

func newAgent(t testing.TB, o agentOptions) *agent {
	t.Helper()
	if o.podUID == "" {
		o.podUID = "pod-1"
	}
	if o.namespace == "" {
		o.namespace = "sandboxes"
	}
	key, err := client.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	signer, err := client.NewSigner(map[string][]byte{keyID + ".pem": key})
	if err != nil {
		t.Fatal(err)
	}
	a := &agent{key: privateKey(t, key), workspace: t.TempDir()}
	self, err := os.Executable()
	if o.shipped {
		self, err = localagent.Program()
	}
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"serve", "--listen=127.0.0.1:0", "--workspace=" + a.workspace}, o.args...)
	cmd := exec.Command(self, args...)
	if o.environ == nil {
		o.environ = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + a.workspace}
	}
	cmd.Env = append(append(o.environ, actAsAgent+"=1"), podEnviron(t, key, o.namespace, o.podUID)...)
	if o.root != "" {
		a.enterRoot(t, cmd, o.root, o.args...)
	} else {
		initproc.Isolate(cmd)
	}
	prepare(cmd, o.within)
	p, err := localagent.Launch(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	a.process, a.exited, a.log = p.Process, p.Exited, p.Log
	a.url = "http://" + p.Address.String()
	a.client = client.New(signer, client.Options{Port: int(p.Address.Port()), AllowLoopback: true})
	t.Cleanup(a.client.Close)
	a.pod = client.Pod{Namespace: o.namespace, UID: o.podUID, IP: p.Address.Addr()}
	return a
}

// podEnviron is what the controller sets in a pod.
func podEnviron(t testing.TB, key []byte, namespace, podUID string) []string {
	t.Helper()
	signer, err := client.NewSigner(map[string][]byte{keyID + ".pem": key})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := signer.PublicKeys()
	if err != nil {
		t.Fatal(err)
	}
	return []string{client.EnvNamespace + "=" + namespace, client.EnvPodUID + "=" + podUID, client.EnvPublicKeys + "=" + keys}
}

// enterRoot makes cmd run in a root that holds the program and a workspace.
func (a *agent) enterRoot(t testing.TB, cmd *exec.Cmd, root string, args ...string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root for chroot")
	}
	a.workspace = filepath.Join(root, "workspace")
	path, err := localagent.Program() // the test binary may need libraries
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(filepath.Join(root, "agent"), program, 0o755)
	}
	if err = errors.Join(err, os.Mkdir(a.workspace, 0o755)); err != nil {
		t.Fatal(err)
	}
	cmd.Path = "/agent"
	cmd.Args = append([]string{"/agent", "serve", "--listen=127.0.0.1:0", "--workspace=/workspace"}, args...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Cloneflags: syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
}

// run runs a command to its result.
func (a *agent) run(t testing.TB, command string) *client.ExecResult {
	t.Helper()
	return a.exec(t, client.ExecRequest{Command: command})
}

func (a *agent) exec(t testing.TB, r client.ExecRequest) *client.ExecResult {
	t.Helper()
	result, err := a.client.Exec(t.Context(), a.pod, r, 0)
	if err != nil {
		t.Fatalf("exec %.200q: %v\n%s", r.Command, err, a.log)
	}
	return result
}

// output runs a command that must succeed and returns its standard output.
func (a *agent) output(t testing.TB, command string) string {
	t.Helper()
	r := a.run(t, command)
	if r.ExitCode != 0 {
		t.Fatalf("%.200q: exit code %d, stderr %q", command, r.ExitCode, r.Stderr)
	}
	return r.Stdout
}

// memory is the resident memory of the agent itself, and peak the most that was.
func (a *agent) memory(t testing.TB) int64 { return a.status(t, "VmRSS:") }

func (a *agent) peak(t testing.TB) int64 { return a.status(t, "VmHWM:") }

// status is one of the sizes that the kernel tells of the agent.
func (a *agent) status(t testing.TB, field string) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == field {
			kb, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kb << 10
		}
	}
	t.Fatalf("no %s in /proc/PID/status", field)
	return 0
}

func (a *agent) terminate(t testing.TB) {
	t.Helper()
	if err := a.process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// fifo opens a FIFO in the workspace, which waits for the other side, and
// reads or writes a line.
func (a *agent) fifo(t testing.TB, name string, write bool) {
	t.Helper()
	var err error
	if path := filepath.Join(a.workspace, name); write {
		err = os.WriteFile(path, []byte("\n"), 0)
	} else {
		_, err = os.ReadFile(path)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func privateKey(t testing.TB, encoded []byte) ed25519.PrivateKey {
	t.Helper()
	block, _ := pem.Decode(encoded)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return key.(ed25519.PrivateKey)
}
