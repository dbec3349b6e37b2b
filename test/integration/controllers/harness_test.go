package controllers_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/controllers/networkpolicy"
	"github.com/berth-dev/berth/controllers/sandbox"
	"github.com/berth-dev/berth/controllers/sandbox/pod"
	"github.com/berth-dev/berth/controllers/sandboxtemplate"
	agent "github.com/berth-dev/berth/sandbox-agent/client"
	"github.com/berth-dev/berth/test/builders"
	"github.com/berth-dev/berth/test/invariants"
)

var podOptions = pod.Options{AgentImage: "registry.example/agent:1", Injection: pod.ImageVolume, HostUsers: true}

// harness reconciles by hand, with a clock that stands still until it is moved.
type harness struct {
	namespace string
	clock     *clocktesting.FakePassiveClock
	sandboxes *sandbox.Controller
	templates *sandboxtemplate.Controller
	keeper    *networkpolicy.Keeper
}

// newHarness has a namespace of its own and the template "default" in it. The
// functions come between the controllers and the API server.
func newHarness(ctx context.Context, funcs interceptor.Funcs) *harness {
	GinkgoHelper()
	h := bareHarness(ctx, newNamespace(ctx), funcs)
	Expect(admin.Create(ctx, builders.MakeTemplate("default", h.namespace).Obj())).To(Succeed())
	return h
}

// bareHarness is another controller process for a namespace that is there. It
// has led for an hour, so that it trusts its cache.
func bareHarness(ctx context.Context, namespace string, funcs interceptor.Funcs) *harness {
	GinkgoHelper()
	h := justElected(ctx, namespace, funcs)
	h.clock.SetTime(time.Now().Add(-time.Hour))
	_, err := h.sandboxes.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: "nobody"}})
	Expect(err).NotTo(HaveOccurred())
	h.clock.SetTime(time.Now())
	return h
}

// justElected is a controller process that leads from its first reconcile on.
func justElected(_ context.Context, namespace string, funcs interceptor.Funcs) *harness {
	GinkgoHelper()
	h := &harness{namespace: namespace, clock: clocktesting.NewFakePassiveClock(time.Now())}
	cached := interceptor.NewClient(indexed(admin), funcs)
	h.keeper = networkpolicy.NewKeeper(cached, networkpolicy.Options{SystemNamespace: "berth-system"})
	recorder := events.NewFakeRecorder(1000)
	h.sandboxes = sandbox.NewController(sandbox.Dependencies{
		Client: cached, Live: admin, Clock: h.clock, Recorder: recorder, Policies: h.keeper, Keys: newKeys(),
	}, podOptions)
	h.templates = sandboxtemplate.NewController(cached, h.clock, recorder, h.keeper, podOptions)
	return h
}

// indexed stands for a cache that never lags: it answers from the API server, and
// knows the index by owner, which the API server does not.
func indexed(live client.WithWatch) client.WithWatch {
	return interceptor.NewClient(live, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			options := (&client.ListOptions{}).ApplyOptions(opts)
			pods, ok := list.(*corev1.PodList)
			if !ok || options.FieldSelector == nil {
				return c.List(ctx, list, opts...)
			}
			owner, _ := options.FieldSelector.RequiresExactMatch(sandbox.IndexOwner)
			all := &corev1.PodList{}
			if err := c.List(ctx, all, client.InNamespace(options.Namespace)); err != nil {
				return err
			}
			for i := range all.Items {
				if ref := sandbox.OwnerOf(&all.Items[i]); ref != nil && string(ref.UID) == owner {
					pods.Items = append(pods.Items, all.Items[i])
				}
			}
			return nil
		},
	})
}

type fixedKeys struct{ ring *agent.Signer }

func (k fixedKeys) Current() *agent.Signer { return k.ring }

func newKeys() fixedKeys {
	GinkgoHelper()
	pem, err := agent.GenerateKey()
	Expect(err).NotTo(HaveOccurred())
	ring, err := agent.NewSigner(map[string][]byte{"key-0001.pem": pem})
	Expect(err).NotTo(HaveOccurred())
	return fixedKeys{ring}
}

// create stores the sandbox and gives it as stored.
func (h *harness) create(ctx context.Context, builder *builders.Sandbox) *v1alpha1.Sandbox {
	GinkgoHelper()
	object := builder.Obj()
	Expect(admin.Create(ctx, object)).To(Succeed())
	return object
}

func (h *harness) make(name string) *builders.Sandbox { return builders.MakeSandbox(name, h.namespace) }

// reconcile runs once, and checks what is true of every status.
func (h *harness) reconcile(ctx context.Context, name string) reconcile.Result {
	GinkgoHelper()
	result, err := h.try(ctx, name)
	Expect(err).NotTo(HaveOccurred())
	return result
}

func (h *harness) try(ctx context.Context, name string) (reconcile.Result, error) {
	GinkgoHelper()
	result, err := h.sandboxes.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: h.namespace, Name: name}})
	if stored := h.find(ctx, name); err == nil && stored != nil && *stored.Status.ObservedGeneration > 0 {
		Expect(invariants.CheckSandbox(stored)).To(Succeed())
	}
	return result, err
}

// settle reconciles for as long as the controller asks to be called again at
// once, as its queue would, and gives the sandbox and when it wants to wake.
func (h *harness) settle(ctx context.Context, name string) (*v1alpha1.Sandbox, time.Duration) {
	GinkgoHelper()
	const enough = 10
	for range enough {
		if result := h.reconcile(ctx, name); result.RequeueAfter == 0 || result.RequeueAfter > time.Millisecond {
			return h.find(ctx, name), result.RequeueAfter
		}
	}
	Fail("the controller asked to be called again at once more than ten times")
	return nil, 0
}

// find gives the stored sandbox, or nil.
func (h *harness) find(ctx context.Context, name string) *v1alpha1.Sandbox {
	GinkgoHelper()
	object := &v1alpha1.Sandbox{}
	err := admin.Get(ctx, client.ObjectKey{Namespace: h.namespace, Name: name}, object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	Expect(err).NotTo(HaveOccurred())
	return object
}

// pods are the sandbox's that are not on their way out.
func (h *harness) pods(ctx context.Context, of *v1alpha1.Sandbox) []corev1.Pod {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(admin.List(ctx, list, client.InNamespace(h.namespace), client.MatchingLabels{v1alpha1.LabelSandboxUID: string(of.UID)})).To(Succeed())
	var live []corev1.Pod
	for _, item := range list.Items {
		if item.DeletionTimestamp.IsZero() {
			live = append(live, item)
		}
	}
	return live
}

// pod is the one live pod of the sandbox.
func (h *harness) pod(ctx context.Context, of *v1alpha1.Sandbox) *corev1.Pod {
	GinkgoHelper()
	live := h.pods(ctx, of)
	Expect(live).To(HaveLen(1), "live pods of %s", of.Name)
	return &live[0]
}

// becomes writes the pod's status as a kubelet would.
func (h *harness) becomes(ctx context.Context, p *corev1.Pod, change func(*builders.Pod)) {
	GinkgoHelper()
	current := &corev1.Pod{}
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(p), current)).To(Succeed())
	builder := builders.PodFrom(current)
	change(builder)
	Expect(admin.Status().Update(ctx, builder.Obj())).To(Succeed())
}

// ready brings a new sandbox to Ready.
func (h *harness) ready(ctx context.Context, builder *builders.Sandbox) *v1alpha1.Sandbox {
	GinkgoHelper()
	object := h.create(ctx, builder)
	h.settle(ctx, object.Name)
	return h.makeReady(ctx, object)
}

// makeReady has the sandbox's present pod become ready.
func (h *harness) makeReady(ctx context.Context, object *v1alpha1.Sandbox) *v1alpha1.Sandbox {
	GinkgoHelper()
	h.becomes(ctx, h.pod(ctx, object), func(p *builders.Pod) { p.Ready(h.clock.Now(), "10.0.0.7") })
	settled, _ := h.settle(ctx, object.Name)
	Expect(settled).To(BeReady())
	return settled
}

// at moves the clock.
func (h *harness) at(t time.Time) { h.clock.SetTime(t) }

// gone deletes a pod at once, as the kubelet does after the grace.
func gone(ctx context.Context, p *corev1.Pod) {
	GinkgoHelper()
	Expect(admin.Delete(ctx, p, client.GracePeriodSeconds(0))).To(Succeed())
}

// held puts a finalizer on the pod, so that it stays while it terminates.
func held(ctx context.Context, p *corev1.Pod) {
	GinkgoHelper()
	patch := client.MergeFrom(p.DeepCopy())
	p.Finalizers = append(p.Finalizers, "berth.example/held")
	p.ManagedFields = nil
	Expect(admin.Patch(ctx, p, patch)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		current := &corev1.Pod{}
		if err := admin.Get(ctx, client.ObjectKeyFromObject(p), current); err != nil {
			Expect(client.IgnoreNotFound(err)).NotTo(HaveOccurred())
			return
		}
		release(ctx, current)
	})
}

// release takes the object's finalizers away.
func release(ctx context.Context, object client.Object) {
	GinkgoHelper()
	Expect(admin.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
}
