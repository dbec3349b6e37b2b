package components

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

func TestEveryComponentIsPinned(t *testing.T) {
	t.Parallel()
	for _, c := range Catalog() {
		version := c.Version() // panics if the pins don't have it
		if c.Module != "" && !strings.HasPrefix(version, "v") {
			t.Errorf("%s: version %q", c.Name, version)
		}
		if key := c.key(); !strings.HasPrefix(key, c.Name+"-"+version+"-") {
			t.Errorf("%s: its folder is called %s", c.Name, key)
		}
	}
}

// What the catalog builds must be a tool of its module file, or `go mod tidy`
// would take its dependencies away.
func TestEveryPackageIsAToolOfItsModuleFile(t *testing.T) {
	t.Parallel()
	for _, c := range Catalog() {
		mod, _ := c.modFiles()
		file, err := modfile.Parse(c.Pins+".mod", mod, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, pkg := range c.Packages {
			found := slices.ContainsFunc(file.Tool, func(tool *modfile.Tool) bool { return tool.Path == pkg })
			if c.Module != "" && !found {
				t.Errorf("%s: %s.mod has no line `tool %s`", name, c.Pins, pkg)
			}
		}
	}
}

func TestKubernetesSaysItsVersion(t *testing.T) {
	t.Parallel()
	c := kubernetes("kubelet")
	args := strings.Join(c.buildArgs("out", "pkg"), " ")
	if want := "-X k8s.io/component-base/version.gitVersion=" + c.Version(); !strings.Contains(args, want) {
		t.Errorf("go %s: no %s", args, want)
	}
}

func TestKeyChangesWithTheRecipe(t *testing.T) {
	t.Parallel()
	c := kubernetes("kubelet")
	if c.key() != kubernetes("kubelet").key() {
		t.Error("one component has two keys")
	}
	changed := c
	changed.Tags = "other"
	if changed.key() == c.key() {
		t.Errorf("other build tags, and still %s", c.key())
	}
	changed = c
	changed.Pins = "containerd"
	changed.Module = "github.com/containerd/containerd/v2"
	if changed.key() == c.key() {
		t.Errorf("other pins, and still %s", c.key())
	}
}

func TestNamed(t *testing.T) {
	t.Parallel()
	all, err := Named()
	if err != nil || len(all) != len(Catalog()) {
		t.Errorf("no names: %d components, %v, want all %d", len(all), err, len(Catalog()))
	}
	some, err := Named("kubectl", "etcd")
	if err != nil || len(some) != 2 || some[0].Name != "etcd" || some[1].Name != "kubectl" {
		t.Errorf("got %v, %v, want etcd and kubectl in the catalog's order", some, err)
	}
	if _, err := Named("etcd", "nosuch"); err == nil || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("got %v, want an error that names nosuch", err)
	}
}
