// Package apiserver starts a real API server with etcd for integration tests, and
// brings the project's manifests into it.
package apiserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Root is the checkout's top folder.
var Root = func() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..")
}()

// Start starts etcd and an API server that knows Berth's kinds. Whoever started
// it stops it. It fails if it isn't told where the two programs are.
func Start() (*envtest.Environment, error) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return nil, errors.New("KUBEBUILDER_ASSETS is not set: run `make test-integration`, which builds " +
			"etcd and kube-apiserver, or set it to a folder that has them")
	}
	environment := &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join(Root, "config", "crd")},
		ErrorIfCRDPathMissing: true,
	}
	if _, err := environment.Start(); err != nil {
		return nil, fmt.Errorf("start the API server of %s: %w", os.Getenv("KUBEBUILDER_ASSETS"), err)
	}
	return environment, nil
}
