// Package e2e proves Berth on a real cluster, with real pods, through the doors
// that its users have: kubectl, and the MCP gateway.
//
// It uses the cluster of KUBECONFIG, which has Berth and its images installed,
// and everything through the API server, so it need not be near the cluster.
// Each spec has a namespace of its own; those that disturb Berth itself are
// Serial.
package e2e

import (
	"context"
	"os"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/berth-dev/berth/test/cluster"
)

// admin is the cluster as its administrator sees it.
var admin *cluster.Cluster

func TestEndToEnd(t *testing.T) {
	if os.Getenv("KUBECONFIG") == "" {
		t.Fatal("KUBECONFIG is not set: these tests need a cluster with Berth installed. " +
			"Run `make test-e2e`, or set KUBECONFIG to a cluster that you can spare.")
	}
	ctrllog.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	RegisterFailHandler(Fail)
	RunSpecs(t, "Berth end to end")
}

var _ = BeforeSuite(func(ctx context.Context) {
	var err error
	admin, err = cluster.Connect()
	Expect(err).NotTo(HaveOccurred())
	Expect(admin.WaitForBerth(ctx)).To(Succeed())
}, NodeTimeout(rolloutTimeout))

// image gives the name of one of this repository's images.
func image(name string) string {
	version := os.Getenv("VERSION")
	if version == "" {
		version = "dev"
	}
	return "ghcr.io/berth-dev/" + name + ":" + version
}
