// Package cluster reaches a running Kubernetes cluster for the programs in test:
// objects through a typed client, components through forwarded ports, callers'
// tokens, and waits that watch instead of polling.
//
// Everything goes through the API server, so it works alike on a cluster in
// this machine's network namespace, on kind and on a remote one.
package cluster

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/api/v1alpha1"
)

// Where Berth's components are.
const (
	// SystemNamespace is where Berth's components run.
	SystemNamespace = "berth-system"
	// SigningKeySecret holds the keys that requests to agents are signed with.
	SigningKeySecret = "berth-signing-key"
	// NameLabel, on a component's pods, is its name: berth-controller, berth-gateway.
	NameLabel = "app.kubernetes.io/name"
	// GatewayPort is the port of a gateway's pod that callers use.
	GatewayPort = 8080
)

// Cluster is an administrator's view of a cluster.
type Cluster struct {
	client.WithWatch

	// Config is the REST configuration that the client was made from. Its
	// client-side rate limiter is off: tests measure and provoke the server.
	Config *rest.Config
}

// Connect uses the kubeconfig that KUBECONFIG or the home directory name, at its
// current context. It fails without one; it does not fall back on localhost.
func Connect() (*Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("no cluster to connect to; set KUBECONFIG, or run inside `hack/bin/cluster exec --`: %w", err)
	}
	config.QPS = -1
	return forConfig(config)
}

// As gives the same cluster as another user sees it, by impersonation.
func (c *Cluster) As(user rest.ImpersonationConfig) (*Cluster, error) {
	config := rest.CopyConfig(c.Config)
	config.Impersonate = user
	return forConfig(config)
}

// ServerVersion is the API server's, such as v1.37.2.
func (c *Cluster) ServerVersion() (string, error) {
	discovered, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		return "", err
	}
	version, err := discovered.ServerVersion()
	if err != nil {
		return "", err
	}
	return version.GitVersion, nil
}

func forConfig(config *rest.Config) (*Cluster, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	return &Cluster{WithWatch: c, Config: config}, nil
}
