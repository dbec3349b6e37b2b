package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/test/session"
)

const (
	transferBytes  = 512 << 20
	transferRounds = 5
	transferID     = "transfer"
)

// transfer is P4 for files: an upload, and the reading of an artifact, through the
// gateway, against the same bytes over one plain connection.
func transfer(ctx context.Context, b *bench) ([]result, error) {
	target, s, err := b.wideSession(ctx)
	if err != nil {
		return nil, fmt.Errorf("files: %w", err)
	}
	uploaded, err := uploadRate(ctx, target, s)
	if err != nil {
		return nil, fmt.Errorf("upload: %w", err)
	}
	read, err := readRate(ctx, target, s)
	if err != nil {
		return nil, fmt.Errorf("artifact: %w", err)
	}
	return []result{uploaded, read}, s.Close()
}

// wideSession makes a session with room for large files and the processors to
// move them.
func (b *bench) wideSession(ctx context.Context) (session.Target, *session.Session, error) {
	template := &v1alpha1.SandboxTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "wide"}}
	limits := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("2Gi")}
	template.Spec.PodTemplate.Spec.Containers = []corev1.Container{{
		Name: v1alpha1.SessionContainerName, Image: b.image, Resources: corev1.ResourceRequirements{Limits: limits},
	}}
	template.Spec.Limits = &v1alpha1.Limits{ArtifactBytes: ptr.To[int64](transferBytes)}
	if err := b.Create(ctx, template); err != nil {
		return session.Target{}, nil, err
	}
	sandbox := &v1alpha1.Sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: transferID}}
	sandbox.Spec.TemplateRef.Name = template.Name
	if err := b.Create(ctx, sandbox); err != nil {
		return session.Target{}, nil, err
	}
	if err := b.WaitForReady(ctx, sandbox); err != nil {
		return session.Target{}, nil, err
	}
	target := session.Target{Address: b.gateway, Token: b.token, ID: transferID}
	s, err := session.Connect(ctx, target)
	return target, s, err
}

// uploadRate compares an upload with a plain copy into a file.
func uploadRate(ctx context.Context, target session.Target, s *session.Session) (result, error) {
	uploads := &contender{perRound: 1, do: func() (time.Duration, error) {
		started := time.Now()
		file, err := session.Upload(ctx, target, "file", &zeros{left: transferBytes})
		took := time.Since(started)
		if err != nil {
			return 0, err
		}
		return took, must(ctx, s, "rm "+file.Path)
	}}
	plain := &contender{perRound: 1, do: func() (time.Duration, error) {
		out, err := os.CreateTemp("", "berth-bench-")
		if err != nil {
			return 0, err
		}
		defer os.Remove(out.Name())
		defer out.Close()
		return receivePlain(ctx, transferBytes, out)
	}}
	if err := alternate(transferRounds, uploads, plain); err != nil {
		return result{}, err
	}
	return rates("files", "upload of 512 MiB through the gateway, p50, against the same bytes over one TCP connection of loopback into a file, p50",
		0.5, uploads.perSecond(transferBytes), plain.perSecond(transferBytes), "MiB/s"), nil
}

// readRate compares the reading of an artifact with a plain copy.
func readRate(ctx context.Context, target session.Target, s *session.Session) (result, error) {
	if err := must(ctx, s, fmt.Sprintf("dd if=/dev/zero of=large bs=%d count=%d 2>/dev/null", chunk, transferBytes/chunk)); err != nil {
		return result{}, err
	}
	artifact, err := s.Export(ctx, "large")
	if err != nil {
		return result{}, err
	}
	buffer := make([]byte, chunk)
	reads := &contender{perRound: 1, do: timed(func() error {
		answer, err := session.Get(ctx, target, artifact.URI, nil)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, answer.Body, buffer)
		if err == nil && n != transferBytes {
			err = fmt.Errorf("%d of %d bytes came", n, transferBytes)
		}
		return err
	})}
	plain := &contender{perRound: 1, do: func() (time.Duration, error) { return receivePlain(ctx, transferBytes, io.Discard) }}
	if err := alternate(transferRounds, reads, plain); err != nil {
		return result{}, err
	}
	return rates("files", "read of an artifact of 512 MiB through the gateway, GET, p50, against the same bytes over one TCP connection of loopback, p50",
		0.5, reads.perSecond(transferBytes), plain.perSecond(transferBytes), "MiB/s"), nil
}

// must runs a command that must succeed.
func must(ctx context.Context, s *session.Session, command string) error {
	answer, err := s.Bash(ctx, command)
	if err == nil && answer.ExitCode != 0 {
		err = fmt.Errorf("%q gave exit code %d: %s", command, answer.ExitCode, answer.Stderr)
	}
	return err
}

// zeros is so many bytes.
type zeros struct{ left int }

// Len says how many are left.
func (z *zeros) Len() int { return z.left }

// Read implements io.Reader.
func (z *zeros) Read(p []byte) (int, error) {
	if z.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), z.left)
	clear(p[:n])
	z.left -= n
	return n, nil
}
