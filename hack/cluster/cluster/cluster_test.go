package cluster

import (
	"archive/tar"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/hack/cluster/components"
)

func TestIDsDoNotCollide(t *testing.T) {
	t.Parallel()
	ids := map[string]string{}
	for _, checkout := range []string{"/home/a/berth", "/home/b/berth", "/home/a/berth2"} {
		for _, name := range []string{"berth", "test"} {
			id, err := ID(name, checkout)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := ID(name, checkout); err != nil || again != id {
				t.Errorf("%s in %s is %s, then %s, %v", name, checkout, id, again, err)
			}
			if other, taken := ids[id]; taken {
				t.Errorf("%s in %s has the ID %s of %s", name, checkout, id, other)
			}
			ids[id] = name + " in " + checkout
		}
	}
}

func TestNamesThatCannotBeFolders(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "A", "-a", "a-", "a/b", "..", "a b", strings.Repeat("a", 33)} {
		if id, err := ID(name, "/checkout"); err == nil {
			t.Errorf("%q gives the ID %s, want an error", name, id)
		}
	}
}

func TestOptionsValidate(t *testing.T) {
	t.Parallel()
	for nodes, valid := range map[int]bool{-1: false, 0: false, 1: true, 64: true, 65: false} {
		if err := (Options{Nodes: nodes}).Validate(); (err == nil) != valid {
			t.Errorf("%d nodes: %v", nodes, err)
		}
	}
}

func TestOptionsDecideWhatIsBuilt(t *testing.T) {
	t.Parallel()
	built := func(o Options) map[string]bool {
		found := map[string]bool{}
		for _, c := range o.components() {
			found[c.Name] = true
		}
		return found
	}
	least, most := built(Options{}), built(Options{NetworkPolicy: true, Kwok: true})
	for _, name := range []string{"kube-router", "kwok"} {
		if least[name] || !most[name] {
			t.Errorf("%s: built without its option %t, with it %t", name, least[name], most[name])
		}
	}
	if len(most) != len(components.Catalog()) {
		t.Errorf("all options build %d of %d components", len(most), len(components.Catalog()))
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	c := Cluster{ID: "test-0123abcd", Cache: components.Cache{Dir: t.TempDir()}}
	if err := c.writeCredentials(2); err != nil {
		t.Fatal(err)
	}
	for _, holder := range []string{"admin", "kube-scheduler", "kubelet-node0", "kubelet-node1"} {
		data, err := os.ReadFile(filepath.Join(filepath.Dir(c.Kubeconfig()), holder+".conf"))
		if err != nil {
			t.Fatal(err)
		}
		key, err := os.ReadFile(filepath.Join(c.State(), "pki", holder+".key"))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"server: https://172.30.0.1:6443\n", "name: test-0123abcd\n",
			"client-key-data: " + base64.StdEncoding.EncodeToString(key) + "\n",
		} {
			if !strings.Contains(string(data), want) {
				t.Errorf("%s.conf has no line %q:\n%s", holder, want, data)
			}
		}
	}
	if info, err := os.Stat(c.Kubeconfig()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the administrator's kubeconfig: %v, %v, want mode 0600", info.Mode(), err)
	}
}

func TestArchiveIsADockerImage(t *testing.T) {
	t.Parallel()
	image, err := archive("example.com/pause:v1", "pause", []byte("binary"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	var order []string
	for r := tar.NewReader(image); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
		order = append(order, header.Name)
	}
	if diff := cmp.Diff([]string{"manifest.json", "config.json", "layer.tar"}, order); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	var manifest []struct {
		RepoTags, Layers []string
		Config           string
	}
	if err := json.Unmarshal(files["manifest.json"], &manifest); err != nil {
		t.Fatal(err)
	}
	if len(manifest) != 1 || manifest[0].Config != "config.json" || manifest[0].RepoTags[0] != "example.com/pause:v1" {
		t.Errorf("manifest %+v", manifest)
	}
}

func TestObjectReady(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"metadata":{"name":"n"}}`: "n has no condition Ready yet",
		`{"metadata":{"name":"n"},"status":{"conditions":[{"type":"Ready","status":"False","message":"no CNI"}]}}`: "n is not ready: no CNI",
		`{"metadata":{"name":"n"},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`:                     "",
	} {
		var o object
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := o.ready(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
