package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/test/cluster"
)

// gatewayGauge is the sum of a metric over the gateway's replicas.
func gatewayGauge(ctx context.Context, name string) (sum float64) {
	GinkgoHelper()
	pods, err := admin.ReadyPods(ctx, client.ObjectKey{Namespace: cluster.SystemNamespace, Name: "berth-gateway"})
	Expect(err).NotTo(HaveOccurred())
	for _, pod := range pods {
		gauges, err := admin.Scrape(ctx, client.ObjectKeyFromObject(&pod))
		Expect(err).NotTo(HaveOccurred())
		Expect(gauges).To(HaveKey(name))
		sum += gauges[name]
	}
	return sum
}
