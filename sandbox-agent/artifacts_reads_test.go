package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// TestArtifactIsTheMomentOfExport: whatever happens to the file since.
func TestArtifactIsTheMomentOfExport(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	for name, change := range map[string]string{
		"grown":      `echo more >> f`,
		"truncated":  `: > f`,
		"rewritten":  `printf XXXX | dd of=f conv=notrunc 2>/dev/null`,
		"mmap":       `python3 -c 'import mmap; f=open("f","r+b"); m=mmap.mmap(f.fileno(),0); m[0:4]=b"XXXX"; m.flush()'`,
		"replaced":   `echo other > g; mv g f`,
		"deleted":    `rm f`,
		"unreadable": `chmod 000 f`,
	} {
		want := noise(100_000)
		if err := os.RemoveAll(filepath.Join(a.workspace, "f")); err != nil {
			t.Fatal(err)
		}
		a.write(t, "f", want)
		artifact := a.export(t, "f")
		a.output(t, change)
		if got, _, err := a.read(t, artifact.ID, client.Span{}); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: the artifact changed with the file (%v)", name, err)
		}
	}
}

func TestPinnedArtifact(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{limits: client.Limits{ArtifactBytes: 20 << 20}})
	want := noise(10 << 20)
	a.write(t, "f", want)
	artifact := a.export(t, "f")
	a.output(t, `echo more >> f; mv f g`)
	if got, _, err := a.read(t, artifact.ID, client.Span{}); err != nil || !bytes.Equal(got, want) {
		t.Errorf("want what was recorded, grown and moved or not: %d bytes, %v", len(got), err)
	}
	a.output(t, `truncate -s 1000 g`)
	if _, _, err := a.read(t, artifact.ID, client.Span{}); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("want a clean error for a file that shrank, got %v", err)
	}
}

// TestAFileThatShrinksDuringARead breaks the read: it never ends as if that were all,
// and never in zeros.
func TestAFileThatShrinksDuringARead(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{limits: client.Limits{ArtifactBytes: 64 << 20}})
	want := noise(64 << 20)
	a.write(t, "f", want)
	r, err := a.client.ReadArtifact(t.Context(), a.pod, a.export(t, "f").ID, client.Span{}, 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if err := os.Truncate(filepath.Join(a.workspace, "f"), 1000); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r.Body)
	if err == nil || !bytes.HasPrefix(want, got) || len(got) == len(want) {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	a.await(t, "the read has ended", func() bool { return a.descriptors(t) == 1 })
}

// TestADroppedArtifactIsReadToItsEnd, and closed then.
func TestADroppedArtifactIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	want := noise(8 << 20)
	a.write(t, "f", want)
	artifact := a.export(t, "f")
	r, err := a.client.ReadArtifact(t.Context(), a.pod, artifact.ID, client.Span{}, 8<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if err := a.client.DropArtifact(t.Context(), a.pod, artifact.ID); err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.read(t, artifact.ID, client.Span{}); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("want it gone for who comes now, got %v", err)
	}
	if got, err := io.ReadAll(r.Body); err != nil || !bytes.Equal(got, want) {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	a.await(t, "the copy is closed", func() bool { return a.descriptors(t) == 0 })
}

func TestTermDuringAReadClosesCleanly(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	want := noise(8 << 20)
	a.write(t, "f", want)
	r, err := a.client.ReadArtifact(t.Context(), a.pod, a.export(t, "f").ID, client.Span{}, 8<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	a.terminate(t)
	if got, err := io.ReadAll(r.Body); err != nil || !bytes.Equal(got, want) {
		t.Errorf("want the read to finish, got %d bytes, %v", len(got), err)
	}
	if err := <-a.exited; err != nil {
		t.Errorf("want exit 0, got %v", err)
	}
}
