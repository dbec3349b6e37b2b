package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"

	corev1 "k8s.io/api/core/v1"
	k8sclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/sandbox-agent/client"
	"github.com/berth-dev/berth/test/cluster"
)

const agentRounds = 20

// agentAlone is P3: `true` on the agent of a pod over HTTP, with a signed token
// for each request as always, against fork, exec and wait of /bin/true.
func agentAlone(ctx context.Context, b *bench) ([]result, error) {
	pod, agent, err := b.agentOf(ctx, "agent")
	if err != nil {
		return nil, fmt.Errorf("P3: %w", err)
	}
	defer agent.Close()
	calls := &contender{perRound: 100, do: timed(func() error { return agentTrue(ctx, agent, pod) })}
	forks := &contender{perRound: 100, do: timed(func() error { return exec.Command("/bin/true").Run() })}
	if err := alternate(agentRounds, calls, forks); err != nil {
		return nil, fmt.Errorf("P3: %w", err)
	}
	return []result{ratioOfMedians("P3", "`true` on the agent alone over HTTP",
		"fork, exec and wait of /bin/true by a Go program", 0.8, calls.samples, forks.samples)}, nil
}

// agentTrue runs the command true, which must succeed, without the gateway.
func agentTrue(ctx context.Context, agent *client.Client, pod client.Pod) error {
	answer, err := agent.Exec(ctx, pod, client.ExecRequest{Command: "true"}, 0)
	if err == nil && answer.ExitCode != 0 {
		err = fmt.Errorf("true gave exit code %d", answer.ExitCode)
	}
	return err
}

// agentOf makes a session through the gateway, which also binds it, and gives its
// pod and a client of its agent, for which the gateway has no part from here on.
func (b *bench) agentOf(ctx context.Context, id string) (client.Pod, *client.Client, error) {
	s, err := b.connect(ctx, id)
	if err != nil {
		return client.Pod{}, nil, err
	}
	if err := errors.Join(bashTrue(ctx, s), s.Close()); err != nil {
		return client.Pod{}, nil, err
	}
	pod, err := b.pod(ctx, id)
	if err != nil {
		return client.Pod{}, nil, err
	}
	agent, err := b.agentClient(ctx)
	return pod, agent, err
}

// pod gives the address and identity of a session's pod.
func (b *bench) pod(ctx context.Context, id string) (client.Pod, error) {
	sandbox, err := b.sandbox(ctx, id)
	if err != nil {
		return client.Pod{}, err
	}
	ip, err := netip.ParseAddr(sandbox.Status.PodIP)
	return client.Pod{Namespace: b.namespace, UID: sandbox.Status.PodUID, IP: ip, KeyID: sandbox.Status.KeyID}, err
}

// agentClient signs with the cluster's own key, which an administrator may read.
func (b *bench) agentClient(ctx context.Context) (*client.Client, error) {
	secret := &corev1.Secret{}
	if err := b.Get(ctx, k8sclient.ObjectKey{Namespace: cluster.SystemNamespace, Name: cluster.SigningKeySecret}, secret); err != nil {
		return nil, err
	}
	signer, err := client.NewSigner(secret.Data)
	if err != nil {
		return nil, err
	}
	return client.New(signer, client.Options{}), nil
}
