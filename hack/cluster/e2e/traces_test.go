//go:build e2e

package e2e

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// snapshot is what a cluster must leave as it was.
type snapshot struct{ mounts string }

func takeSnapshot(t *testing.T) snapshot {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	return snapshot{string(mounts)}
}

func (s snapshot) assertSame(t *testing.T, after snapshot) {
	t.Helper()
	if s.mounts != after.mounts {
		t.Errorf("mounts before:\n%s\nand after:\n%s", s.mounts, after.mounts)
	}
}

// traces are what a running cluster is recognised by, besides its name: the
// machine may run others at the same time.
type traces struct {
	id          string
	supervisors []string
	namespaces  []string
}

// traces lists those of the running cluster.
func (p program) traces(t *testing.T) traces {
	t.Helper()
	state := filepath.Dir(filepath.Dir(strings.TrimSpace(p.must(t, "kubeconfig"))))
	found := traces{id: filepath.Base(state)}
	pidFiles, err := filepath.Glob(filepath.Join(state, "nodes", "*", "supervisor.pid"))
	if err != nil || len(pidFiles) == 0 {
		t.Fatalf("no node of %s: %v", state, err)
	}
	for _, file := range pidFiles {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var pid int
		if _, err := fmt.Sscanf(string(data), `{"pid":%d,`, &pid); err != nil {
			t.Fatalf("%s: %s: %v", file, data, err)
		}
		found.supervisors = append(found.supervisors, string(data))
		for _, kind := range []string{"mnt", "net", "uts", "ipc", "pid_for_children"} {
			link, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, kind))
			if err != nil {
				t.Fatal(err)
			}
			found.namespaces = append(found.namespaces, link)
		}
	}
	return found
}

// assertGone fails for each process in one of the cluster's namespaces, each
// cgroup and each folder of it.
func (f traces) assertGone(t *testing.T) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/ns/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range links {
		link, err := os.Readlink(path)
		if err != nil {
			continue // ended meanwhile
		}
		if slices.Contains(f.namespaces, link) && !zombie(path) {
			t.Errorf("%s is still in %s of the cluster", path, link)
		}
	}
	cgroups, err := exec.Command("find", "/sys/fs/cgroup", "-type", "d", "-path", "*/berth-"+f.id+"*").Output()
	if err != nil || len(cgroups) > 0 {
		t.Errorf("cgroups are left (%v):\n%s", err, cgroups)
	}
}

// zombie says whether the process that the path in /proc belongs to has ended, and
// is there only until the machine's init, which adopted it, takes notice.
func zombie(path string) bool {
	stat, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(path)), "stat"))
	return err != nil || bytes.Contains(stat, []byte(") Z "))
}

// kill kills a daemon of the first node behind the supervisor's back.
func (p program) kill(t *testing.T, daemon string) {
	t.Helper()
	for line := range strings.Lines(p.must(t, "status")) {
		var node, name string
		var pid int
		n, _ := fmt.Sscan(line, &node, &name, &pid) // the head of the table has no number
		if n == 3 && name == daemon {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("%s doesn't run", daemon)
}

// probeImage builds the image of the test's pods and returns its archive.
func probeImage(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "probe")
	build := exec.Command("go", "build", "-o", binary, "./testdata/probe")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the probe: %v\n%s", err, out)
	}
	data, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	layer := tarOf(t, "probe", data)
	sum := sha256.Sum256(layer)
	config := fmt.Sprintf(`{"architecture":"amd64","os":"linux","config":{"Entrypoint":["/probe"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}`,
		hex.EncodeToString(sum[:]))
	const manifest = `[{"Config":"config.json","RepoTags":["berth.dev/cluster/probe:v0"],"Layers":["layer.tar"]}]`
	path := filepath.Join(t.TempDir(), "probe.tar")
	image := tarOf(t, "manifest.json", []byte(manifest), "config.json", []byte(config), "layer.tar", layer)
	if err := os.WriteFile(path, image, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// tarOf makes an archive of pairs of names and contents.
func tarOf(t *testing.T, pairs ...any) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for pair := range slices.Chunk(pairs, 2) {
		name, data := pair[0].(string), pair[1].([]byte)
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(data))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
