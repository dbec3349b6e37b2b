package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/api/v1alpha1"
)

const coldPairs = 30

// coldStart is P5: from nothing to the first result of a session, against a bare
// pod of the very same spec from its creation to Ready, in pairs.
func coldStart(ctx context.Context, b *bench) ([]result, error) {
	measured, err := coldPairsOf(ctx, b)
	if err != nil {
		return nil, fmt.Errorf("P5: %w", err)
	}
	return []result{measured}, nil
}

func coldPairsOf(ctx context.Context, b *bench) (result, error) {
	spec, err := b.bareSpec(ctx)
	if err != nil {
		return result{}, err
	}
	started := 0
	next := func(prefix string) string {
		started++
		return fmt.Sprintf("%s-%d", prefix, started)
	}
	sessions := &contender{perRound: 1, do: func() (time.Duration, error) { return b.coldSession(ctx, next("cold")) }}
	pods := &contender{perRound: 1, do: func() (time.Duration, error) { return b.barePod(ctx, next("bare"), spec) }}
	if err := alternate(coldPairs, sessions, pods); err != nil {
		return result{}, err
	}
	return ratioOfMeans("P5", "cold start through the gateway, creation to first result",
		"bare pod of the very same spec, creation to Ready", 1.15, sessions.samples, pods.samples), nil
}

// bareSpec gives the spec of a session's pod without what the scheduler and the
// API server wrote into it.
func (b *bench) bareSpec(ctx context.Context) (*corev1.PodSpec, error) {
	const id = "model"
	if _, err := b.firstResult(ctx, id); err != nil {
		return nil, err
	}
	sandbox, err := b.sandbox(ctx, id)
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{}
	if err := b.Get(ctx, client.ObjectKey{Namespace: b.namespace, Name: sandbox.Status.PodName}, pod); err != nil {
		return nil, err
	}
	spec := pod.Spec.DeepCopy()
	spec.NodeName = ""
	return spec, b.deleteAndWait(ctx, sandbox, pod)
}

// coldSession measures one session and removes it.
func (b *bench) coldSession(ctx context.Context, id string) (time.Duration, error) {
	took, err := b.firstResult(ctx, id)
	if err != nil {
		return 0, err
	}
	sandbox, err := b.sandbox(ctx, id)
	if err != nil {
		return 0, err
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: sandbox.Status.PodName}}
	return took, b.deleteAndWait(ctx, sandbox, pod)
}

// firstResult creates a Sandbox and calls bash in it. The client's connection to
// the gateway is there before, as an AI platform's would be.
func (b *bench) firstResult(ctx context.Context, id string) (time.Duration, error) {
	s, err := b.connect(ctx, id)
	if err != nil {
		return 0, err
	}
	started := time.Now()
	err = b.Create(ctx, &v1alpha1.Sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: id}})
	if err == nil {
		err = bashTrue(ctx, s)
	}
	took := time.Since(started)
	return took, errors.Join(err, s.Close())
}

// barePod measures one pod that nothing manages and removes it.
func (b *bench) barePod(ctx context.Context, name string, spec *corev1.PodSpec) (time.Duration, error) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}, Spec: *spec.DeepCopy()}
	started := time.Now()
	if err := b.Create(ctx, pod); err != nil {
		return 0, err
	}
	if err := b.WaitForPodReady(ctx, pod); err != nil {
		return 0, err
	}
	took := time.Since(started)
	return took, b.deleteAndWait(ctx, pod, pod)
}

// deleteAndWait deletes an object and waits until its pod is gone, so that the
// next start finds the node as this one did.
func (b *bench) deleteAndWait(ctx context.Context, object client.Object, pod *corev1.Pod) error {
	if err := b.Delete(ctx, object); err != nil {
		return err
	}
	return b.WaitUntilGone(ctx, pod, &corev1.PodList{})
}
