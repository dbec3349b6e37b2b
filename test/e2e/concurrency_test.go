package e2e

import (
	"context"
	"fmt"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/api/v1alpha1"
)

const firstCalls = 40

var _ = Describe("Parallel first calls over two replicas of the gateway", func() {
	It("make one Sandbox and one pod, and all get their result", func(ctx context.Context) {
		t := newTenant(ctx)
		Expect(len(t.gateways)).To(BeNumerically(">=", 2), "replicas of the gateway")
		sandboxes := t.collect(ctx, &v1alpha1.SandboxList{})
		pods := t.collect(ctx, &corev1.PodList{})

		outputs := make([]string, firstCalls)
		errs := make([]error, firstCalls)
		var all sync.WaitGroup
		for i := range firstCalls {
			s := connect(ctx, t.targetAt(i%2, "shared"))
			all.Go(func() {
				result, err := s.Bash(ctx, fmt.Sprintf(`echo "%d $$ $HOSTNAME"`, i))
				outputs[i], errs[i] = result.Stdout, err
			})
		}
		all.Wait()

		sandbox := t.waitReady(ctx, "shared")
		shells := sets.New[string]()
		for i := range firstCalls {
			Expect(errs[i]).NotTo(HaveOccurred(), "call %d", i)
			var number int
			var shell, host string
			Expect(fmt.Sscan(outputs[i], &number, &shell, &host)).To(Equal(3), "call %d gave %q", i, outputs[i])
			Expect(number).To(Equal(i), "each call has its own result")
			shells.Insert(shell + "@" + host)
		}
		Expect(shells).To(HaveLen(1), "all ran in one shell")
		Expect(sandboxes()).To(Equal(sets.New(sandbox.UID)))
		Expect(pods()).To(Equal(sets.New(types.UID(sandbox.Status.PodUID))))
	}, SpecTimeout(specTimeout))
})

// collect notes the UID of every object of a kind that the namespace ever holds
// from now on. The function it gives ends that and tells them.
func (t *tenant) collect(ctx context.Context, list client.ObjectList) func() sets.Set[types.UID] {
	GinkgoHelper()
	w, err := admin.Watch(ctx, list, client.InNamespace(t.namespace))
	Expect(err).NotTo(HaveOccurred())
	seen := make(chan sets.Set[types.UID])
	go func() {
		uids := sets.New[types.UID]()
		for event := range w.ResultChan() {
			if object, ok := event.Object.(client.Object); ok && event.Type != watch.Error {
				uids.Insert(object.GetUID())
			}
		}
		seen <- uids
	}()
	return func() sets.Set[types.UID] {
		w.Stop()
		return <-seen
	}
}
