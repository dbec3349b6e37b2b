package node

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// spec is a node of a cluster whose every option is on.
func spec(index int) Spec {
	binaries := map[string]string{}
	for _, name := range []string{
		"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy",
		"kube-router", "kwok", "containerd", "runc", "ptp",
	} {
		binaries[name] = "/cache/" + name + "-v1/" + name
	}
	return Spec{
		Cluster: "test-0123abcd", Index: index, State: "/cache/clusters/test-0123abcd", Binaries: binaries,
		NetworkPolicy: true, KwokStages: "/cache/kwok-v1/stages.yaml",
	}
}

// Each node's configuration files and command lines, for a person to read.
func TestConfigurationIsAsReviewed(t *testing.T) {
	t.Parallel()
	for index := range 2 {
		s := spec(index)
		var got bytes.Buffer
		files, err := render(s)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for name := range files {
			names = append(names, name)
		}
		sort.Strings(names)
		for _, name := range names {
			fmt.Fprintf(&got, "==> %s\n%s\n", name, files[name])
		}
		for _, d := range s.Daemons() {
			fmt.Fprintf(&got, "==> %s, after %v\n", d.Name, d.After)
			for _, arg := range d.Argv {
				fmt.Fprintln(&got, arg)
			}
			fmt.Fprintln(&got)
		}
		golden := filepath.Join("testdata", s.Name()+".golden")
		if *update {
			if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Errorf("%s differs (-want +got), `go test ./node -update` accepts it:\n%s", golden, diff)
		}
	}
}

func TestOptionsDecideWhatRuns(t *testing.T) {
	t.Parallel()
	names := func(s Spec) map[string]bool {
		found := map[string]bool{}
		for _, d := range s.Daemons() {
			found[d.Name] = true
		}
		return found
	}
	bare := spec(0)
	bare.NetworkPolicy, bare.KwokStages = false, ""
	for _, daemon := range []string{"kube-router", "kwok"} {
		if names(bare)[daemon] {
			t.Errorf("%s runs without its option", daemon)
		}
		if !names(spec(0))[daemon] {
			t.Errorf("%s doesn't run with its option", daemon)
		}
	}
	for daemon := range names(spec(1)) {
		if !names(spec(0))[daemon] {
			t.Errorf("%s runs on the second node but not on the first", daemon)
		}
	}
	for _, daemon := range []string{"etcd", "kube-apiserver", "kwok"} {
		if names(spec(1))[daemon] {
			t.Errorf("%s runs on the second node", daemon)
		}
	}
}

func TestNodesDoNotOverlap(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for i := range MaxNodes {
		s := spec(i)
		for what, value := range map[string]string{
			"address": s.IP().String(), "pods": s.PodNetwork().String(), "folder": s.Dir(), "cgroup": s.CgroupRoot(),
		} {
			if other, taken := seen[value]; taken {
				t.Errorf("%s has the same %s as %s: %s", s.Name(), what, other, value)
			}
			seen[value] = s.Name()
		}
	}
	if last := spec(MaxNodes - 1).PodNetwork().String(); last != "10.244.252.0/22" {
		t.Errorf("the last node's pods are in %s, want the end of %s", last, PodCIDR)
	}
}

func TestParseHierarchies(t *testing.T) {
	t.Parallel()
	const mountinfo = `24 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 24 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
32 30 0:28 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
`
	got := parseHierarchies([]byte(mountinfo))
	want := []hierarchy{{"/sys/fs/cgroup/memory", false}, {"/sys/fs/cgroup/unified", true}}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %v, want %v", got, want)
	}
}
