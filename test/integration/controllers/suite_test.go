// Package controllers_test holds the controllers against a real API server. No
// kubelet runs: the specs write pods' statuses themselves.
package controllers_test

import (
	"context"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/berth-dev/berth/controllers"
	"github.com/berth-dev/berth/test/integration/apiserver"
)

var (
	config *rest.Config
	scheme *runtime.Scheme
	// admin reads and writes without a cache.
	admin client.WithWatch
)

func TestControllers(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Controllers")
}

var _ = BeforeSuite(func() {
	log.SetLogger(GinkgoLogr)
	environment, err := apiserver.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(environment.Stop)
	config = controllers.Unthrottled(environment.Config)
	scheme, err = controllers.Scheme()
	Expect(err).NotTo(HaveOccurred())
	admin, err = client.NewWithWatch(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
})

// newNamespace makes a namespace that no other spec uses.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "spec-"}}
	Expect(admin.Create(ctx, namespace)).To(Succeed())
	return namespace.Name
}
