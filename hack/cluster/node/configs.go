package node

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"text/template"

	"github.com/berth-dev/berth/hack/cluster/process"
)

//go:embed templates
var templateFiles embed.FS

var templates = template.Must(template.ParseFS(templateFiles, "templates/*"))

// configs maps each configuration file, relative to the node's folder, to the
// template that it's made from.
var configs = map[string]string{
	"containerd.toml":       "containerd.toml",
	"cni/10-berth.conflist": "cni.conflist",
	"kubelet.yaml":          "kubelet.yaml",
	"kube-proxy.yaml":       "kube-proxy.yaml",
}

// values is what the templates see.
type values struct{ Spec }

// PauseImage is the constant.
func (values) PauseImage() string { return PauseImage }

// PodCIDR is the constant.
func (values) PodCIDR() string { return PodCIDR }

// CNIBinaries is the folder of the CNI plugins.
func (v values) CNIBinaries() string { return filepath.Dir(v.Binaries["ptp"]) }

// render returns the content of each configuration file.
func render(s Spec) (map[string][]byte, error) {
	files := map[string][]byte{}
	for name, source := range configs {
		var out bytes.Buffer
		if err := templates.ExecuteTemplate(&out, source, values{s}); err != nil {
			return nil, fmt.Errorf("rendering %s: %w", name, err)
		}
		files[name] = out.Bytes()
	}
	return files, nil
}

// writeConfigs writes the configuration files into the node's folder.
func writeConfigs(s Spec) error {
	files, err := render(s)
	if err != nil {
		return err
	}
	for name, data := range files {
		path := s.File(name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := process.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
