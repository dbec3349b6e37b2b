package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/session"
)

// makeFile writes a megabyte that no one could have guessed, and tells its hash.
const makeFile = "head -c 1048576 /dev/urandom > random.bin && sha256sum random.bin"

func run(ctx context.Context, options options) error {
	c, err := cluster.Connect()
	if err != nil {
		return err
	}
	fmt.Printf("Berth quickstart, on the cluster at %s\n\n", c.Config.Host)
	s := newSteps()

	sandbox, err := start(ctx, c, s, options.sample, options.namespace)
	if err != nil {
		return err
	}
	target, err := reach(ctx, c, s, client.ObjectKeyFromObject(sandbox))
	if err != nil {
		return err
	}
	sess, err := session.Connect(ctx, target)
	if err != nil {
		return err
	}
	s.done("Connected an MCP client to the gateway", "X-Session-ID: "+target.ID)
	if err := use(ctx, sess, s); err != nil {
		return err
	}
	if err := roundTrip(ctx, target, sess, s); err != nil {
		return err
	}
	fmt.Printf("\nAll of it took %.1f s.\n", s.last.Sub(s.started).Seconds())
	tellNext(options.prefix, sandbox)
	return nil
}

// start waits for Berth, applies the Sandbox and waits for its pod.
func start(ctx context.Context, c *cluster.Cluster, s *steps, sample, namespace string) (*v1alpha1.Sandbox, error) {
	if err := c.WaitForBerth(ctx); err != nil {
		return nil, err
	}
	s.done("Controller and gateway are running")

	object, err := sandboxOf(sample, namespace)
	if err != nil {
		return nil, err
	}
	if err := c.ApplyObject(ctx, object); err != nil {
		return nil, fmt.Errorf("apply %s: %w", sample, err)
	}
	s.done(fmt.Sprintf("Applied the Sandbox %q of %s", object.GetName(), sample))

	sandbox := &v1alpha1.Sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName()}}
	if err := c.WaitForReady(ctx, sandbox); err != nil {
		return nil, err
	}
	s.done("The Sandbox is Ready: it has a pod of its own", "pod "+sandbox.Status.PodName)
	return sandbox, nil
}

// sandboxOf gives the one Sandbox of a file.
func sandboxOf(sample, namespace string) (*unstructured.Unstructured, error) {
	objects, err := cluster.Objects(sample, namespace)
	if err != nil {
		return nil, err
	}
	if len(objects) != 1 || objects[0].GetKind() != "Sandbox" {
		return nil, fmt.Errorf("%s must hold one Sandbox and nothing else", sample)
	}
	return objects[0], nil
}

// reach gets a caller's token and opens a port to the gateway.
func reach(ctx context.Context, c *cluster.Cluster, s *steps, sandbox client.ObjectKey) (session.Target, error) {
	caller := client.ObjectKey{Namespace: sandbox.Namespace, Name: "quickstart"}
	if err := c.CreateCaller(ctx, caller); err != nil {
		return session.Target{}, err
	}
	token, err := c.Token(ctx, caller)
	if err != nil {
		return session.Target{}, err
	}
	s.done("Got a token for the gateway", "of service account "+caller.String())

	gateways, err := c.ReadyPods(ctx, client.ObjectKey{Namespace: cluster.SystemNamespace, Name: "berth-gateway"})
	if err != nil {
		return session.Target{}, err
	}
	address, err := c.Forward(ctx, client.ObjectKeyFromObject(&gateways[0]), cluster.GatewayPort)
	return session.Target{Address: address, Token: token, ID: sandbox.Name}, err
}

// use runs commands in the session, and takes a file out of it.
func use(ctx context.Context, sess *session.Session, s *steps) error {
	if _, err := bash(ctx, sess, s, "Called the tool bash", `visitor=$(whoami); echo "Hello from $HOSTNAME"`); err != nil {
		return err
	}
	if _, err := bash(ctx, sess, s, "Called it again: the shell kept its variables", `echo "visitor is still $visitor"`); err != nil {
		return err
	}
	written, err := bash(ctx, sess, s, "Made a file in the session", makeFile)
	if err != nil {
		return err
	}
	artifact, err := sess.Export(ctx, "random.bin")
	if err != nil {
		return err
	}
	s.done("Exported it", artifact.URI)
	content, err := sess.Read(ctx, artifact.URI)
	if err != nil {
		return err
	}
	s.done("Read it back as an MCP resource", fmt.Sprintf("%d bytes", len(content)))
	return compare(s, content, strings.Fields(written)[0], artifact.SHA256)
}

// bash runs a command that must succeed, and gives its output.
func bash(ctx context.Context, sess *session.Session, s *steps, what, command string) (string, error) {
	result, err := sess.Bash(ctx, command)
	if err != nil {
		return "", err
	}
	if result.ExitCode != 0 || strings.TrimSpace(result.Stdout) == "" {
		return "", fmt.Errorf("%s: %q gave exit code %d, stdout %q, stderr %q", what, command, result.ExitCode, result.Stdout, result.Stderr)
	}
	s.done(what, "$ "+command, result.Stdout)
	return result.Stdout, nil
}

// compare holds the hash of bytes that were read against those that were told of
// them.
func compare(s *steps, content []byte, told ...string) error {
	read := sum(content)
	for _, hash := range told {
		if hash != read {
			return fmt.Errorf("SHA-256 differs: %s of the bytes read, %s as told before", read, strings.Join(told, ", "))
		}
	}
	s.done("The SHA-256 is the same at each step", read)
	return nil
}

// sum is the SHA-256 of content, in hex.
func sum(content []byte) string {
	hash := sha256.Sum256(content)
	return hex.EncodeToString(hash[:])
}

// next is what to try, with the command's prefix, the Sandbox's name and its
// namespace.
const next = `
Try next:

  %[1]skubectl get sandboxes -n %[3]s -o wide
  %[1]skubectl describe sandbox %[2]s -n %[3]s
  %[1]skubectl delete sandbox %[2]s -n %[3]s

With an MCP client of yours: forward the gateway's port, and give the client the
URL and a token. Each name in X-Session-ID is a session; one that isn't there yet
is made.

  %[1]skubectl port-forward -n berth-system service/berth-gateway 8080:80
  %[1]skubectl create token quickstart -n %[3]s --audience berth-gateway

  URL      http://127.0.0.1:8080/mcp%[4]s
  headers  Authorization: Bearer TOKEN
           X-Session-ID: my-session

Read on in docs/architecture.md.
`

// inPrefix is said of the URL when commands need a prefix: the cluster's loopback
// isn't this machine's.
const inPrefix = "  (for a client started by `%s`)"

// tellNext prints what to try.
func tellNext(prefix string, sandbox *v1alpha1.Sandbox) {
	where := ""
	if prefix != "" {
		where = fmt.Sprintf(inPrefix, prefix)
		prefix += " "
	}
	fmt.Printf(next, prefix, sandbox.Name, sandbox.Namespace, where)
}
