package cluster

import (
	"context"
	"fmt"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/portforward"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Forward opens a port on loopback that leads to a port of a pod, as `kubectl
// port-forward` does, until the context ends. It gives the address, host:port.
// Such a connection enters the pod from its own loopback: no NetworkPolicy
// applies to it.
func (c *Cluster) Forward(ctx context.Context, pod client.ObjectKey, port int) (address string, err error) {
	clientset, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return "", err
	}
	url := clientset.CoreV1().RESTClient().Post().Resource("pods").
		Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
	dialer, err := portforward.NewSPDYOverWebsocketDialer(url, c.Config)
	if err != nil {
		return "", err
	}
	ready := make(chan struct{})
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", port)},
		ctx.Done(), ready, io.Discard, io.Discard)
	if err != nil {
		return "", err
	}
	failed := make(chan error, 1)
	go func() { failed <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-failed:
		return "", fmt.Errorf("forward port %d of pod %s: %w", port, pod, err)
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("127.0.0.1:%d", ports[0].Local), nil
}

// ReadyPods lists the pods behind a Service that are ready and not on their way out.
func (c *Cluster) ReadyPods(ctx context.Context, service client.ObjectKey) ([]corev1.Pod, error) {
	svc := &corev1.Service{}
	if err := c.Get(ctx, service, svc); err != nil {
		return nil, err
	}
	pods := &corev1.PodList{}
	if err := c.List(ctx, pods, client.InNamespace(service.Namespace),
		client.MatchingLabelsSelector{Selector: labels.SelectorFromSet(svc.Spec.Selector)}); err != nil {
		return nil, err
	}
	var ready []corev1.Pod
	for _, pod := range pods.Items {
		if IsReady(&pod) {
			ready = append(ready, pod)
		}
	}
	if len(ready) == 0 {
		return nil, fmt.Errorf("no pod behind service %s is ready", service)
	}
	return ready, nil
}

// IsReady tells whether a pod is ready and not on its way out.
func IsReady(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
