package sandbox

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/controllers/sandbox/pod"
	"github.com/berth-dev/berth/test/builders"
)

// aFullPod is a pod as the API server has it, statuses and all.
func aFullPod() *corev1.Pod {
	built := pod.Build(aSandbox().Obj(), aTemplate(), 1, pod.Keys{NewestID: "key-0001", PublicJWKS: "{}"}, pod.Options{Injection: pod.InitContainer})
	built.UID, built.ResourceVersion = "pod-uid", "7"
	built.Spec.NodeName = "node"
	built.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	return builders.PodFrom(built).Ready(born, "10.0.0.1").Before(137, "OOMKilled", "", born).
		InitWaiting("berth-agent-install", "ErrImagePull", "no").Phase(corev1.PodFailed, "Evicted", "disk").Terminating(now).Obj()
}

func TestTheCacheKeepsOfAPodWhatIsReadOfIt(t *testing.T) {
	t.Parallel()
	full := aFullPod()
	trimmed, err := trimPod(full.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	kept := trimmed.(*corev1.Pod)
	if diff := cmp.Diff(viewOf(full), viewOf(kept)); diff != "" {
		t.Errorf("what is read of a pod was cut (-full +kept):\n%s", diff)
	}
	if diff := cmp.Diff(terminationOf(full, now), terminationOf(kept, now)); diff != "" {
		t.Errorf("how a pod ended reads differently (-full +kept):\n%s", diff)
	}
	if diff := cmp.Diff(restartOf(full), restartOf(kept)); diff != "" {
		t.Errorf("a restart reads differently (-full +kept):\n%s", diff)
	}
	for _, key := range []string{v1alpha1.AnnotationKeyID, v1alpha1.AnnotationPodGeneration} {
		if kept.Annotations[key] != full.Annotations[key] || kept.Annotations[key] == "" {
			t.Errorf("annotation %s is %q, was %q", key, kept.Annotations[key], full.Annotations[key])
		}
	}
	if len(kept.Spec.Containers) > 0 || kept.ManagedFields != nil {
		t.Error("the pod's containers or managed fields are kept: they are most of its size")
	}
}

func TestTheCacheKeepsOfAForeignPodItsIdentityOnly(t *testing.T) {
	t.Parallel()
	foreign := aFullPod()
	foreign.OwnerReferences = nil
	trimmed, err := trimPod(foreign)
	if err != nil {
		t.Fatal(err)
	}
	want := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: foreign.Name, UID: "pod-uid", ResourceVersion: "7"}}
	if diff := cmp.Diff(want, trimmed); diff != "" {
		t.Errorf("a foreign pod in the cache (-want +got):\n%s", diff)
	}
}

func TestTheCacheDropsTheSessionsEnvironment(t *testing.T) {
	t.Parallel()
	trimmed, err := trimSandbox(aSandbox().Env("TOKEN", "secret").Obj())
	if err != nil {
		t.Fatal(err)
	}
	if env := trimmed.(*v1alpha1.Sandbox).Spec.Env; len(env) > 0 {
		t.Errorf("the cache holds %v", env)
	}
}

func TestOnlyWhatIsReadOfAPodWakesItsSandbox(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		wakes  bool
	}{
		"heartbeat of a condition": {func(p *corev1.Pod) { p.Status.Conditions[0].LastProbeTime = metav1.NewTime(now) }, false},
		"labels of others":         {func(p *corev1.Pod) { p.Labels["a"] = "b" }, false},
		"annotations":              {func(p *corev1.Pod) { p.Annotations["a"] = "b" }, false},
		"host address":             {func(p *corev1.Pod) { p.Status.HostIP = "192.0.2.1" }, false},
		"resize":                   {func(p *corev1.Pod) { p.Status.ContainerStatuses[0].AllocatedResources = corev1.ResourceList{} }, false},
		"readiness":                {func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }, true},
		"message":                  {func(p *corev1.Pod) { p.Status.Conditions[0].Message = "else" }, true},
		"address":                  {func(p *corev1.Pod) { p.Status.PodIP = "10.0.0.2" }, true},
		"node":                     {func(p *corev1.Pod) { p.Spec.NodeName = "other" }, true},
		"phase":                    {func(p *corev1.Pod) { p.Status.Phase = corev1.PodUnknown }, true},
		"deletion":                 {func(p *corev1.Pod) { p.DeletionTimestamp = nil }, true},
		"container":                {func(p *corev1.Pod) { p.Status.ContainerStatuses[0].Ready = false }, true},
		"owner":                    {func(p *corev1.Pod) { p.OwnerReferences = nil }, true},
		"its sandbox's label":      {func(p *corev1.Pod) { delete(p.Labels, v1alpha1.LabelSandboxUID) }, true},
	} {
		before, after := aFullPod(), aFullPod()
		c.change(after)
		if got := podChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != c.wakes {
			t.Errorf("%s: wakes the sandbox: %v, want %v", name, got, c.wakes)
		}
	}
}

func TestOwnStatusWritesDoNotWakeASandbox(t *testing.T) {
	t.Parallel()
	before, after := aSandbox().Obj(), aSandbox().Status(with(1, now)).Obj()
	after.ResourceVersion = "2"
	if specOrDeletion().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("a status write wakes the sandbox")
	}
	if !specOrDeletion().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: aSandbox().Generation(2).Obj()}) {
		t.Error("a spec write does not wake the sandbox")
	}
	if !specOrDeletion().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: aSandbox().Deleting(now).Obj()}) {
		t.Error("a deletion does not wake the sandbox")
	}
}
