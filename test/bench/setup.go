package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/session"
)

// tearDownTimeout is for the namespace with all that was made in it.
const tearDownTimeout = 2 * time.Minute

// bench is what all measures share: a namespace of its own with a template, and
// a caller of the gateway.
type bench struct {
	*cluster.Cluster
	image     string // of the sandboxes
	namespace string
	gateway   string // host:port of the gateway's Service
	token     string
}

// setUp makes the namespace and finds the gateway. A sandbox may use cpus (a
// quantity) of processors, or as many as by Berth's default when that is empty.
func setUp(ctx context.Context, image, cpus string) (*bench, error) {
	c, err := cluster.Connect()
	if err != nil {
		return nil, err
	}
	rollout, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := c.WaitForBerth(rollout); err != nil {
		return nil, err
	}
	service := &corev1.Service{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: cluster.SystemNamespace, Name: "berth-gateway"}, service); err != nil {
		return nil, fmt.Errorf("find the gateway: %w", err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "berth-bench-"}}
	if err := c.Create(ctx, namespace); err != nil {
		return nil, err
	}
	b := &bench{
		Cluster:   c,
		image:     image,
		namespace: namespace.Name,
		gateway:   fmt.Sprintf("%s:%d", service.Spec.ClusterIP, service.Spec.Ports[0].Port),
	}
	if err := b.fill(ctx, cpus); err != nil {
		return nil, errors.Join(err, b.tearDown())
	}
	return b, nil
}

// fill makes the template and the caller.
func (b *bench) fill(ctx context.Context, cpus string) error {
	template := &v1alpha1.SandboxTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: v1alpha1.DefaultTemplateName}}
	container := corev1.Container{Name: v1alpha1.SessionContainerName, Image: b.image}
	if cpus != "" {
		limit, err := resource.ParseQuantity(cpus)
		if err != nil {
			return err
		}
		container.Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: limit}
	}
	template.Spec.PodTemplate.Spec.Containers = []corev1.Container{container}
	if err := b.Create(ctx, template); err != nil {
		return err
	}
	caller := client.ObjectKey{Namespace: b.namespace, Name: "bench"}
	if err := b.CreateCaller(ctx, caller); err != nil {
		return err
	}
	token, err := b.Token(ctx, caller)
	b.token = token
	return err
}

// tearDown deletes the namespace and waits until it is gone.
func (b *bench) tearDown() error {
	ctx, cancel := context.WithTimeout(context.Background(), tearDownTimeout)
	defer cancel()
	return b.DeleteNamespace(ctx, b.namespace)
}

// connect connects a client for a session through the gateway.
func (b *bench) connect(ctx context.Context, id string) (*session.Session, error) {
	return session.Connect(ctx, session.Target{Address: b.gateway, Token: b.token, ID: id})
}

// bashTrue runs the command true, which must succeed.
func bashTrue(ctx context.Context, s *session.Session) error {
	result, err := s.Bash(ctx, "true")
	if err != nil {
		return err
	}
	if result.ExitCode != 0 {
		return fmt.Errorf("true gave exit code %d: %s", result.ExitCode, result.Stderr)
	}
	return nil
}

// sandbox gets a session's Sandbox.
func (b *bench) sandbox(ctx context.Context, id string) (*v1alpha1.Sandbox, error) {
	sandbox := &v1alpha1.Sandbox{}
	err := b.Get(ctx, client.ObjectKey{Namespace: b.namespace, Name: id}, sandbox)
	return sandbox, err
}
