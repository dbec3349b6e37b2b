package e2e

import (
	"context"
	"net/netip"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/api/v1alpha1"
	agentclient "github.com/berth-dev/berth/sandbox-agent/client"
	"github.com/berth-dev/berth/test/cluster"
)

// directAgent is a session's agent, spoken to as the gateway does, but past it.
type directAgent struct {
	*agentclient.Client
	pod   agentclient.Pod
	close func()
}

// agentKeys reads the keys that sign requests to agents, as only an
// administrator can.
func agentKeys(ctx context.Context) *agentclient.Signer {
	GinkgoHelper()
	secret := &corev1.Secret{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: cluster.SystemNamespace, Name: cluster.SigningKeySecret}, secret)).To(Succeed())
	keys, err := agentclient.NewSigner(secret.Data)
	Expect(err).NotTo(HaveOccurred())
	return keys
}

// dialAgent reaches the agent of a Sandbox that is Ready, by a forwarded port.
func dialAgent(ctx context.Context, keys *agentclient.Signer, sandbox *v1alpha1.Sandbox) (*directAgent, error) {
	status := sandbox.Status
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	address, err := admin.Forward(ctx, client.ObjectKey{Namespace: sandbox.Namespace, Name: status.PodName}, agentclient.Port)
	if err != nil {
		cancel()
		return nil, err
	}
	local, err := netip.ParseAddrPort(address)
	if err != nil {
		cancel()
		return nil, err
	}
	c := agentclient.New(keys, agentclient.Options{Port: int(local.Port()), AllowLoopback: true})
	return &directAgent{
		Client: c,
		pod:    agentclient.Pod{Namespace: sandbox.Namespace, UID: status.PodUID, IP: local.Addr(), KeyID: status.KeyID},
		close:  func() { c.Close(); cancel() },
	}, nil
}

// agentAt reaches the agent of a session that has a pod, for as long as the spec lasts.
func (t *tenant) agentAt(ctx context.Context, id string) *directAgent {
	GinkgoHelper()
	a, err := dialAgent(ctx, agentKeys(ctx), t.sandbox(ctx, id))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(a.close)
	return a
}
