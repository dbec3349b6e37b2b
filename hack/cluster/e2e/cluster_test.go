//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	// buildWait is how long the first `up` may take, which builds everything.
	buildWait = 30 * time.Minute
	// commandWait is how long anything else may take.
	commandWait = 3 * time.Minute
	// policyWait is how long the policy engine may take to see a change.
	policyWait = 15 * time.Second
)

// program is the built `cluster`, used as a person would.
type program struct {
	path string
	name string
}

// newProgram builds `cluster` for a cluster of its own, which ends with the test.
func newProgram(t *testing.T, name string) program {
	t.Helper()
	p := program{path: filepath.Join(t.TempDir(), "cluster"), name: name}
	build := exec.Command("go", "build", "-o", p.path, "github.com/berth-dev/berth/hack/cluster")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building cluster: %v\n%s", err, out)
	}
	t.Cleanup(func() { p.must(t, "down") })
	return p
}

// command prepares a sub-command on this cluster.
func (p program) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.Env = append(os.Environ(), "BERTH_CLUSTER="+p.name)
	return cmd
}

// run runs a sub-command and returns what it prints on standard output.
func (p program) run(wait time.Duration, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	cmd := p.command(ctx, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("cluster %s: %w\n%s%s", strings.Join(args, " "), err, &out, &errs)
	}
	return out.String(), nil
}

// must is run for what has to work.
func (p program) must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := p.run(commandWait, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// kubectl runs kubectl in the cluster.
func (p program) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return p.must(t, append([]string{"exec", "--", "kubectl"}, args...)...)
}

// reaches says whether the pod is greeted at the address.
func (p program) reaches(pod, address string) error {
	_, err := p.run(commandWait, "exec", "--", "kubectl", "exec", pod, "--", "/probe", "dial", address)
	return err
}

// address is where the pod listens.
func (p program) address(t *testing.T, pod string) string {
	t.Helper()
	return p.kubectl(t, "get", "pod", pod, "-o", "jsonpath={.status.podIP}") + ":8090"
}

// eventually calls f until it returns nil.
func eventually(t *testing.T, wait time.Duration, what string, f func() error) {
	t.Helper()
	deadline := time.Now().Add(wait)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %v", what, wait, err)
		}
	}
}

func TestCluster(t *testing.T) {
	before := takeSnapshot(t)
	p := newProgram(t, "e2e-cluster")
	p.must(t, "down") // of an earlier test that was killed
	if _, err := p.run(buildWait, "up", "--nodes", "2"); err != nil {
		t.Fatal(err)
	}
	traces := p.traces(t)
	p.must(t, "up") // changes nothing
	if again := p.traces(t); strings.Join(again.supervisors, " ") != strings.Join(traces.supervisors, " ") {
		t.Errorf("a second up started nodes anew: %v, then %v", traces.supervisors, again.supervisors)
	}
	t.Log(p.must(t, "status"))

	t.Run("exec", func(t *testing.T) { testExec(t, p) })
	p.must(t, "load-image", probeImage(t))
	p.kubectl(t, "apply", "-f", "testdata/pods.yaml")
	p.kubectl(t, "wait", "--for=condition=Ready", "pod/server", "pod/neighbour", "pod/stray", "--timeout=60s")
	server := p.address(t, "server")
	service := p.kubectl(t, "get", "service", "server", "-o", "jsonpath={.spec.clusterIP}") + ":80"

	t.Run("image volume", func(t *testing.T) {
		p.kubectl(t, "exec", "stray", "--", "/image/probe", "dial", "127.0.0.1:8090")
	})
	t.Run("policy", func(t *testing.T) { testPolicy(t, p, server, service) })
	t.Run("a killed daemon comes back", func(t *testing.T) {
		for _, daemon := range []string{"kube-apiserver", "containerd", "kubelet"} {
			p.kill(t, daemon)
			p.must(t, "up") // waits until it's ready
			eventually(t, commandWait, "status", func() error { _, err := p.run(commandWait, "status"); return err })
		}
		eventually(t, policyWait, "reaching the server", func() error { return p.reaches("stray", server) })
	})

	p.must(t, "down")
	before.assertSame(t, takeSnapshot(t))
	traces.assertGone(t)
	if out, err := p.run(commandWait, "status"); err == nil {
		t.Errorf("status after down succeeds:\n%s", out)
	}
	p.must(t, "down") // nothing to do
}

func testExec(t *testing.T, p program) {
	ctx, cancel := context.WithTimeout(context.Background(), commandWait)
	defer cancel()
	cmd := p.command(ctx, "exec", "--", "sh", "-c", "cat; exit 7")
	cmd.Stdin = strings.NewReader("from standard input")
	out, err := cmd.Output()
	if string(out) != "from standard input" {
		t.Errorf("standard input didn't arrive: %q", out)
	}
	if code := cmd.ProcessState.ExitCode(); code != 7 {
		t.Errorf("exit code %d (%v), want the command's own 7", code, err)
	}
	if got, want := p.must(t, "exec", "--", "printenv", "KUBECONFIG"), p.must(t, "kubeconfig"); got != want {
		t.Errorf("KUBECONFIG is %q, want %q", got, want)
	}
	// No route leads out of the cluster's network.
	if links := p.must(t, "exec", "--", "cat", "/proc/net/dev"); !strings.Contains(links, "fabric:") {
		t.Errorf("the command isn't in the cluster's network namespace:\n%s", links)
	}
}

// testPolicy tries connections into the server, by its address and by its Service,
// and out of it, before a policy forbids them, while it does and afterwards.
func testPolicy(t *testing.T, p program, server, service string) {
	connections := []struct{ from, to string }{
		{"stray", server}, {"neighbour", server}, {"stray", service}, {"neighbour", service},
		{"server", p.address(t, "stray")}, {"server", p.address(t, "neighbour")},
	}
	step := func(when string, wanted bool) {
		for _, c := range connections {
			eventually(t, policyWait, when, func() error {
				if err := p.reaches(c.from, c.to); (err == nil) != wanted {
					return fmt.Errorf("from %s to %s: %v, want it to work: %t", c.from, c.to, err, wanted)
				}
				return nil
			})
		}
	}
	step("without a policy", true)
	p.kubectl(t, "apply", "-f", "testdata/policy.yaml")
	step("with a policy", false)
	p.kubectl(t, "delete", "-f", "testdata/policy.yaml")
	step("after the policy is gone", true)
}

// A killed `up` can be repeated, and taken down, whenever it was killed.
func TestKilledUp(t *testing.T) {
	before := takeSnapshot(t)
	p := newProgram(t, "e2e-killed")
	p.must(t, "down")
	for _, after := range []time.Duration{10 * time.Millisecond, 50 * time.Millisecond, 300 * time.Millisecond, time.Second, 2 * time.Second} {
		ctx, cancel := context.WithTimeout(context.Background(), after)
		if err := p.command(ctx, "up").Run(); err == nil {
			t.Logf("up was done within %s", after)
		}
		cancel()
		if after < time.Second {
			p.must(t, "down")
			continue
		}
		p.must(t, "up")
		p.must(t, "status")
		traces := p.traces(t)
		p.must(t, "down")
		traces.assertGone(t)
	}
	before.assertSame(t, takeSnapshot(t))
}

// Two clusters of one checkout run side by side, and one goes without the other.
func TestTwoClusters(t *testing.T) {
	one, two := newProgram(t, "e2e-one"), newProgram(t, "e2e-two")
	for _, p := range []program{one, two} {
		p.must(t, "down")
		p.must(t, "up")
		p.kubectl(t, "create", "namespace", p.name)
	}
	one.must(t, "down")
	two.must(t, "status")
	if names := two.kubectl(t, "get", "namespaces", "-o", "name"); !strings.Contains(names, "namespace/e2e-two\n") ||
		strings.Contains(names, "namespace/e2e-one\n") {
		t.Errorf("the second cluster's namespaces:\n%s", names)
	}
}
