package gateway_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	berthv1alpha1 "github.com/berth-dev/berth/api/v1alpha1"
	agent "github.com/berth-dev/berth/sandbox-agent/client"
)

// fakeAPI is an API server for these tests: it knows tokens and who may do what,
// gives UIDs and honours them as preconditions, and counts what it is asked.
type fakeAPI struct {
	client.WithWatch
	inner    client.WithWatch
	statusMu sync.Mutex

	// allowed decides access reviews; nil allows all.
	allowed func(authorizationv1.SubjectAccessReviewSpec) bool
	// onCreate plays the controller: it is called after a Sandbox was created.
	onCreate func(*berthv1alpha1.Sandbox)
	// onRead is called after each read of a Sandbox.
	onRead func()
	// failReviews makes the API server unable to answer reviews.
	failReviews atomic.Bool

	mu       sync.Mutex
	creates  int
	reads    int
	deletes  int
	reviews  int
	uid      int
	watching chan struct{} // signalled by each watch of Sandboxes that begins
}

// IsWatchListSemanticsUnSupported tells reflectors that the fake client can't
// stream a list.
func (*fakeAPI) IsWatchListSemanticsUnSupported() bool { return true }

const tokenAudience = "berth-gateway"

// users are the callers that tokens stand for, by token.
var users = map[string]string{
	"alice":   "alice",
	"bob":     "bob",
	"carol":   "carol",
	"dave":    "dave",
	"erin":    "erin",
	"builder": "system:serviceaccount:team-a:builder",
}

func newAPI(t testing.TB) *fakeAPI {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		berthv1alpha1.AddToScheme, corev1.AddToScheme, authenticationv1.AddToScheme, authorizationv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	key, err := agent.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "berth-system", Name: "berth-signing-key"},
		Data:       map[string][]byte{"key-0001.pem": key},
	}
	api := &fakeAPI{watching: make(chan struct{}, 100)}
	inner := fake.NewClientBuilder().WithScheme(scheme).
		WithIndex(&corev1.Secret{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).
		WithStatusSubresource(&berthv1alpha1.Sandbox{}).WithObjects(secret).Build()
	api.inner = inner
	api.WithWatch = interceptor.NewClient(inner, interceptor.Funcs{
		Create: api.create, Get: api.get, Delete: api.delete, Watch: api.watch,
	})
	return api
}

func (a *fakeAPI) create(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
	switch o := obj.(type) {
	case *authenticationv1.TokenReview:
		return a.reviewToken(o)
	case *authorizationv1.SubjectAccessReview:
		return a.reviewAccess(o)
	case *berthv1alpha1.Sandbox:
		a.mu.Lock()
		a.uid++
		o.UID = types.UID(fmt.Sprintf("sandbox-uid-%d", a.uid))
		a.creates++
		a.mu.Unlock()
		o.Generation = 1
	}
	if err := c.Create(ctx, obj, opts...); err != nil {
		return err
	}
	if s, ok := obj.(*berthv1alpha1.Sandbox); ok && a.onCreate != nil {
		a.onCreate(s.DeepCopy())
	}
	return nil
}

func (a *fakeAPI) reviewToken(r *authenticationv1.TokenReview) error {
	a.mu.Lock()
	a.reviews++
	a.mu.Unlock()
	if a.failReviews.Load() {
		return apierrors.NewInternalError(fmt.Errorf("etcd is away"))
	}
	user, ok := users[r.Spec.Token]
	if !ok || !slices.Contains(r.Spec.Audiences, tokenAudience) {
		r.Status = authenticationv1.TokenReviewStatus{Error: "invalid"}
		return nil
	}
	r.Status = authenticationv1.TokenReviewStatus{
		Authenticated: true,
		User:          authenticationv1.UserInfo{Username: user, Groups: []string{"system:authenticated"}},
		Audiences:     []string{tokenAudience},
	}
	return nil
}

func (a *fakeAPI) reviewAccess(r *authorizationv1.SubjectAccessReview) error {
	a.mu.Lock()
	a.reviews++
	a.mu.Unlock()
	if a.failReviews.Load() {
		return apierrors.NewInternalError(fmt.Errorf("etcd is away"))
	}
	r.Status.Allowed = a.allowed == nil || a.allowed(r.Spec)
	return nil
}

func (a *fakeAPI) get(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	a.mu.Lock()
	a.reads++
	a.mu.Unlock()
	err := c.Get(ctx, key, obj, opts...)
	if a.onRead != nil {
		a.onRead()
	}
	return err
}

func (a *fakeAPI) delete(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
	var o client.DeleteOptions
	o.ApplyOptions(opts)
	if o.Preconditions != nil && o.Preconditions.UID != nil {
		var now berthv1alpha1.Sandbox
		if err := c.Get(ctx, client.ObjectKeyFromObject(obj), &now); err != nil {
			return err
		}
		if now.UID != *o.Preconditions.UID {
			return apierrors.NewConflict(berthv1alpha1.GroupVersion.WithResource("sandboxes").GroupResource(), obj.GetName(), fmt.Errorf("uid"))
		}
	}
	a.mu.Lock()
	a.deletes++
	a.mu.Unlock()
	return c.Delete(ctx, obj)
}

func (a *fakeAPI) watch(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
	w, err := c.Watch(ctx, list, opts...)
	if _, ok := list.(*berthv1alpha1.SandboxList); ok && err == nil {
		a.watching <- struct{}{}
	}
	return w, err
}

// counts are how many Sandboxes were created, read and deleted, and how many
// reviews were asked.
func (a *fakeAPI) counts() (creates, reads, deletes, reviews int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.creates, a.reads, a.deletes, a.reviews
}

// sandbox returns the Sandbox of a session, or nil.
func (a *fakeAPI) sandbox(t *testing.T, namespace, name string) *berthv1alpha1.Sandbox {
	t.Helper()
	var list berthv1alpha1.SandboxList
	if err := a.List(context.Background(), &list, client.InNamespace(namespace)); err != nil {
		t.Fatalf("list Sandboxes: %v", err)
	}
	for i := range list.Items {
		if list.Items[i].Name == name {
			return &list.Items[i]
		}
	}
	return nil
}

// put creates a Sandbox and gives it a status.
func (a *fakeAPI) put(t testing.TB, s *berthv1alpha1.Sandbox) {
	t.Helper()
	status := s.Status.DeepCopy()
	if err := a.Create(context.Background(), s); err != nil {
		t.Fatalf("create Sandbox: %v", err)
	}
	s.Status = *status
	a.setStatus(t, s)
}

// setStatus writes the status of s as a controller does that has seen its newest
// generation; the last writer wins. s is not changed but for its resourceVersion.
func (a *fakeAPI) setStatus(t testing.TB, s *berthv1alpha1.Sandbox) {
	t.Helper()
	a.statusMu.Lock()
	defer a.statusMu.Unlock()
	var now berthv1alpha1.Sandbox
	if err := a.inner.Get(context.Background(), client.ObjectKeyFromObject(s), &now); err != nil {
		t.Errorf("read Sandbox %s: %v", s.Name, err)
		return
	}
	now.Status = *s.Status.DeepCopy()
	now.Status.ObservedGeneration = &now.Generation
	if err := a.inner.Status().Update(context.Background(), &now); err != nil {
		t.Errorf("update status of Sandbox %s: %v", s.Name, err)
	}
}

// readyOn makes a Sandbox ready on an agent's pod.
func readyOn(s *berthv1alpha1.Sandbox, fa *fakeAgent) *berthv1alpha1.Sandbox {
	s.Status.PodName = s.Name + "-pod"
	s.Status.PodUID = fa.audience[len("sandboxes/"):]
	s.Status.PodIP = fa.ip
	s.Status.KeyID = "key-0001"
	one := int64(1)
	s.Status.PodGeneration = &one
	return withReady(s, metav1.ConditionTrue, berthv1alpha1.ReasonReady, "")
}

func withReady(s *berthv1alpha1.Sandbox, status metav1.ConditionStatus, reason, message string) *berthv1alpha1.Sandbox {
	s.Status.Conditions = []metav1.Condition{{
		Type: berthv1alpha1.ConditionReady, Status: status, Reason: reason, Message: message,
		LastTransitionTime: metav1.Now(),
	}}
	return s
}

// newSandbox is a Sandbox in the namespace sandboxes.
func newSandbox(name, owner string) *berthv1alpha1.Sandbox {
	return &berthv1alpha1.Sandbox{
		ObjectMeta: metav1.ObjectMeta{Namespace: "sandboxes", Name: name},
		Spec:       berthv1alpha1.SandboxSpec{Owner: owner},
	}
}
