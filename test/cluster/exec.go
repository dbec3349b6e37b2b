package cluster

import (
	"bytes"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Executor prepares one command for a container, as `kubectl exec` does; each
// Stream of it is one run.
func (c *Cluster) Executor(pod client.ObjectKey, container string, command ...string) (remotecommand.Executor, error) {
	clientset, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	url := clientset.CoreV1().RESTClient().Post().Resource("pods").
		Namespace(pod.Namespace).Name(pod.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{
			Container: container, Command: command, Stdout: true, Stderr: true,
		}, clientgoscheme.ParameterCodec).URL()
	return remotecommand.NewWebSocketExecutor(c.Config, "GET", url.String())
}

// Exec runs a command in a container and gives what it wrote to stdout. The error
// of one that failed holds what it wrote to stderr.
func (c *Cluster) Exec(ctx context.Context, pod client.ObjectKey, container string, command ...string) (string, error) {
	executor, err := c.Executor(pod, container, command...)
	if err != nil {
		return "", err
	}
	var stdout, stderr bytes.Buffer
	if err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &stdout, Stderr: &stderr}); err != nil {
		return stdout.String(), fmt.Errorf("%v in pod %s: %w: %s", command, pod, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.String(), nil
}
