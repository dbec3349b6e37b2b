package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// exportArchive exports path as an archive and reads it: what it holds, by name.
func (a *agent) exportArchive(t testing.TB, path string) (*client.Artifact, map[string]string) {
	t.Helper()
	artifact, err := a.client.Export(t.Context(), a.pod, client.ExportRequest{Path: path, Archive: true})
	if err != nil {
		t.Fatalf("archive %q: %v", path, err)
	}
	data, reading, err := a.read(t, artifact.ID, client.Span{})
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	if want := hex.EncodeToString(sum[:]); artifact.SHA256 != want || reading.SHA256 != want || int64(len(data)) != artifact.Size {
		t.Errorf("archive %q: %+v, read %d bytes of %s", path, artifact, len(data), want)
	}
	return artifact, unpack(t, data)
}

func unpack(t testing.TB, data []byte) map[string]string {
	t.Helper()
	zipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for r := tar.NewReader(zipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all[h.Name] = h.Linkname + string(content)
	}
}

func TestArchive(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	a.output(t, `mkdir -p tree/sub && cd tree && echo hello > sub/f && mkfifo fifo && ln -s /etc/passwd out && ln -s .. up`)
	_, err := a.client.Export(t.Context(), a.pod, client.ExportRequest{Path: "tree"})
	if !errors.Is(err, client.ErrNotRegular) || !strings.Contains(err.Error(), "archive: true") {
		t.Errorf("want a hint for who exports a directory, got %v", err)
	}
	got, files := a.exportArchive(t, "tree")
	if got.Name != "tree.tar.gz" || got.MIMEType != "application/gzip" || got.Notice != `1 left out as FIFOs, sockets or devices ("tree/fifo" first)` {
		t.Errorf("got %+v", got)
	}
	want := map[string]string{"tree/": "", "tree/sub/": "", "tree/sub/f": "hello\n", "tree/out": "/etc/passwd", "tree/up": ".."}
	if len(files) != len(want) {
		t.Errorf("got %q", files)
	}
	for name, content := range want {
		if files[name] != content {
			t.Errorf("%s: want %q, got %q", name, content, files[name])
		}
	}
	if got, files := a.exportArchive(t, "tree/sub/f"); got.Name != "f.tar.gz" || len(files) != 1 || files["f"] != "hello\n" {
		t.Errorf("a file: %+v, %q", got, files)
	}
	if got, files := a.exportArchive(t, "."); files[filepath.Base(a.workspace)+"/tree/sub/f"] != "hello\n" {
		t.Errorf("the workspace: %+v, %q", got, files)
	}
	if n := a.descriptors(t); n != 3 {
		t.Errorf("%d files are open in the workspace, want the three archives", n)
	}
}

// TestHostileTrees end in an error that says why, soon, while health answers, and
// leave neither memory nor descriptors behind.
func TestHostileTrees(t *testing.T) {
	t.Parallel()
	a := asUser(t, agentOptions{shipped: true}) // the race detector takes many times the memory
	a.workspace = userWorkspace
	a.output(t, `mkdir many && python3 -c '
import os
for i in range(66_000): os.close(os.open("many/%0255d" % i, os.O_CREAT))
'`)
	a.output(t, `python3 -c '
import os
os.mkdir("deep"); os.chdir("deep")
for _ in range(10_000): os.mkdir("d"); os.chdir("d")
'`)
	a.output(t, `mkdir sparse noise zeros; truncate -s 1T sparse/f; head -c 9000000 /dev/urandom > noise/f; truncate -s 300M zeros/f`)
	before := a.memory(t)
	worst := a.watchHealth(t)
	for path, want := range map[string]string{
		"many":   "too many long names",
		"deep":   "256 directories deep",
		"sparse": "before it is compressed",
		"noise":  "archive is larger than the limit",
		".":      "", // any of them
	} {
		began := time.Now()
		_, err := a.client.Export(t.Context(), a.pod, client.ExportRequest{Path: path, Archive: true})
		if !errors.Is(err, client.ErrTooLarge) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want %q, got %v", path, want, err)
		}
		t.Logf("%s: %v after %v", path, err, time.Since(began))
	}
	zeros, err := a.client.Export(t.Context(), a.pod, client.ExportRequest{Path: "zeros", Archive: true})
	if err != nil || zeros.Size > 1<<20 {
		t.Errorf("300 MiB of zeros: %+v, %v", zeros, err)
	}
	if slow := worst(); slow > time.Second { // 100 ms, on a machine of one's own
		t.Errorf("health took %v meanwhile", slow)
	}
	if after := a.memory(t); after > before+40<<20 {
		t.Errorf("memory: %d MiB before, %d MiB after", before>>20, after>>20)
	}
	if n := a.descriptors(t); n != 1 {
		t.Errorf("%d files are open in the workspace, want the one archive", n)
	}
}

// watchHealth asks for health again and again, until what it returns is called: that
// tells the longest that an answer took.
func (a *agent) watchHealth(t *testing.T) (stop func() time.Duration) {
	ctx, cancel := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	var slowest time.Duration
	asking.Go(func() {
		for ctx.Err() == nil {
			began := time.Now()
			if _, err := a.client.Health(ctx, a.pod); err != nil {
				if ctx.Err() == nil {
					t.Error(err)
				}
				return
			}
			slowest = max(slowest, time.Since(began))
		}
	})
	stop = func() time.Duration {
		cancel()
		asking.Wait()
		return slowest
	}
	t.Cleanup(func() { stop() })
	return stop
}

// TestDigestOnRequest: a file above 8 MiB, over the wire.
func TestDigestOnRequest(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{limits: client.Limits{ArtifactBytes: 20 << 20}})
	want := noise(8<<20 + 1)
	a.write(t, "f", want)
	sum := sha256.Sum256(want)
	for _, ask := range []bool{false, true} {
		artifact, err := a.client.Export(t.Context(), a.pod, client.ExportRequest{Path: "f", Digest: ask})
		if err != nil {
			t.Fatal(err)
		}
		digest := ""
		if ask {
			digest = hex.EncodeToString(sum[:])
		}
		got, reading, err := a.read(t, artifact.ID, client.Span{})
		if err != nil || !bytes.Equal(got, want) || artifact.SHA256 != digest || reading.SHA256 != digest {
			t.Errorf("digest %v: %+v, read %+v, %v", ask, artifact, reading, err)
		}
	}
}

// TestArtifactsLeaveTheSessionItsDisk: on a small one, copies stop at half of what
// is free, and the session can still write.
func TestArtifactsLeaveTheSessionItsDisk(t *testing.T) {
	t.Parallel()
	a := asUser(t, agentOptions{}, "mount -t tmpfs -o size=16m,mode=777 none "+userWorkspace)
	a.output(t, `head -c 1000000 /dev/urandom > f`)
	taken := 0
	for ; ; taken++ {
		if _, err := a.client.Export(t.Context(), a.pod, client.ExportRequest{Path: "f"}); errors.Is(err, client.ErrNoSpace) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if taken < 10 || taken > 14 {
		t.Errorf("%d copies of 1 MB in 15.8 MB", taken)
	}
	a.output(t, `head -c 900000 /dev/zero > g`)
}

// TestArtifactTotal: over the wire, archives and copies together.
func TestArtifactTotal(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{limits: client.Limits{ArtifactTotalBytes: 300_000}})
	if err := os.Mkdir(filepath.Join(a.workspace, "tree"), 0o700); err != nil {
		t.Fatal(err)
	}
	a.write(t, "tree/f", noise(100_000))
	first := a.export(t, "tree/f")
	second, _ := a.exportArchive(t, "tree")
	third, err := a.client.Export(t.Context(), a.pod, client.ExportRequest{Path: "tree", Archive: true})
	if !errors.Is(err, client.ErrTooManyArtifacts) || !strings.Contains(err.Error(), "all the room") {
		t.Errorf("want no room, got %+v, %v", third, err)
	}
	for _, id := range []string{first.ID, second.ID} {
		if err := a.client.DropArtifact(t.Context(), a.pod, id); err != nil {
			t.Fatal(err)
		}
	}
	a.exportArchive(t, "tree")
	a.exportArchive(t, "tree")
}

// TestAnArchiveEndsWithItsCaller: it takes minutes, and none of them once nobody
// waits for it.
func TestAnArchiveEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{limits: client.Limits{ArtifactBytes: 1 << 30}})
	a.output(t, `mkdir tree; truncate -s 60G tree/f`)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := a.client.Export(ctx, a.pod, client.ExportRequest{Path: "tree", Archive: true})
		ended <- err
	}()
	a.await(t, "the archive has begun", func() bool { return a.descriptors(t) > 0 })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("want it cancelled, got %v", err)
	}
	a.await(t, "the archive has ended", func() bool { return a.descriptors(t) == 0 })
}

// TestAnAgentEndsDuringAnArchive, within its grace.
func TestAnAgentEndsDuringAnArchive(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{limits: client.Limits{ArtifactBytes: 1 << 30}})
	a.output(t, `mkdir tree; truncate -s 60G tree/f`)
	ended := make(chan error, 1)
	go func() {
		_, err := a.client.Export(t.Context(), a.pod, client.ExportRequest{Path: "tree", Archive: true})
		ended <- err
	}()
	a.await(t, "the archive has begun", func() bool { return a.descriptors(t) > 0 })
	began := time.Now()
	a.terminate(t)
	if err := <-a.exited; err != nil || time.Since(began) > 5*time.Second {
		t.Errorf("want exit 0 within the grace, got %v after %v\n%s", err, time.Since(began), a.log)
	}
	if err := <-ended; err == nil {
		t.Error("want an error for an archive that was cut off")
	}
}

// await returns when a condition holds.
func (a *agent) await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s\n%s", what, a.log)
		}
	}
}
