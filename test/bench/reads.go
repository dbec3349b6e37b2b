package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/session"
)

const (
	readBytes     = 8 << 20
	readers       = 8
	readTime      = 5 * time.Second
	readsID       = "reads"
	gaugeInterval = 50 * time.Millisecond
)

// readMemory is P8 for reads: how much a replica of the gateway grows while eight
// callers read artifacts of 8 MiB without a pause, as resources and by GET.
func readMemory(ctx context.Context, b *bench) ([]result, error) {
	measured, err := b.readMemory(ctx)
	if err != nil {
		return nil, fmt.Errorf("P8, reads: %w", err)
	}
	return measured, nil
}

func (b *bench) readMemory(ctx context.Context) ([]result, error) {
	pods, err := b.ReadyPods(ctx, client.ObjectKey{Namespace: cluster.SystemNamespace, Name: "berth-gateway"})
	if err != nil {
		return nil, err
	}
	pod := client.ObjectKeyFromObject(&pods[0])
	// One replica, not the Service: what counts is what each can be made to hold.
	target := session.Target{Address: fmt.Sprintf("%s:%d", pods[0].Status.PodIP, cluster.GatewayPort), Token: b.token, ID: readsID}
	s, err := session.Connect(ctx, target)
	if err != nil {
		return nil, err
	}
	if err := must(ctx, s, fmt.Sprintf("head -c %d /dev/urandom > file", readBytes)); err != nil {
		return nil, err
	}
	artifact, err := s.Export(ctx, "file")
	if err != nil {
		return nil, err
	}
	byGet, err := b.growth(ctx, pod, func(ctx context.Context) error { return getWhole(ctx, target, artifact.URI) })
	if err != nil {
		return nil, err
	}
	asResources, err := b.growth(ctx, pod, func(ctx context.Context) error {
		content, err := s.Read(ctx, artifact.URI)
		if err == nil && len(content) != readBytes {
			err = fmt.Errorf("%d of %d bytes came", len(content), readBytes)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return []result{
		size("P8", "growth of a gateway's resident memory under 8 concurrent reads of 8 MiB, GET", 160, byGet),
		size("P8", "the same, resources/read", 160, asResources),
	}, s.Close()
}

// growth is how much a pod's resident memory is at most, beyond what it was, while
// readers read.
func (b *bench) growth(ctx context.Context, pod client.ObjectKey, read func(context.Context) error) (bytes float64, err error) {
	before, err := b.resident(ctx, pod)
	if err != nil {
		return 0, err
	}
	var all sync.WaitGroup
	ended := make(chan error, readers)
	deadline := time.Now().Add(readTime)
	for range readers {
		all.Go(func() {
			for time.Now().Before(deadline) {
				if err := read(ctx); err != nil {
					ended <- err
					return
				}
			}
		})
	}
	go func() { all.Wait(); close(ended) }()
	for ticks := time.NewTicker(gaugeInterval); ; {
		select {
		case failed, open := <-ended:
			if !open {
				return bytes, err
			}
			err = errors.Join(err, failed)
		case <-ticks.C:
			now, failed := b.resident(ctx, pod)
			if failed != nil {
				return 0, failed
			}
			bytes = max(bytes, now-before)
		}
	}
}

// resident is what the memory of a pod of the gateway is.
func (b *bench) resident(ctx context.Context, pod client.ObjectKey) (float64, error) {
	gauges, err := b.Scrape(ctx, pod)
	return gauges["process_resident_memory_bytes"], err
}

// getWhole reads an artifact of readBytes by GET.
func getWhole(ctx context.Context, target session.Target, uri string) error {
	answer, err := session.Get(ctx, target, uri, nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	n, err := io.Copy(io.Discard, answer.Body)
	if err == nil && n != readBytes {
		err = fmt.Errorf("%d of %d bytes came", n, readBytes)
	}
	return err
}
