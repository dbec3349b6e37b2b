package authn

import (
	"context"
	"net/http"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// reviewer is an API server that gives every token the same status.
func reviewer(t *testing.T, status authenticationv1.TokenReviewStatus) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := authenticationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
			obj.(*authenticationv1.TokenReview).Status = status
			return nil
		},
	})
}

// R18: a token is taken only if the API server says that it is for us. An
// authenticator that knows no audiences answers without any.
func TestAudienceIsMandatory(t *testing.T) {
	t.Parallel()
	user := authenticationv1.UserInfo{Username: "alice"}
	tests := map[string]struct {
		status authenticationv1.TokenReviewStatus
		taken  bool
	}{
		"ours":               {authenticationv1.TokenReviewStatus{Authenticated: true, User: user, Audiences: []string{"us"}}, true},
		"ours among others":  {authenticationv1.TokenReviewStatus{Authenticated: true, User: user, Audiences: []string{"them", "us"}}, true},
		"another":            {authenticationv1.TokenReviewStatus{Authenticated: true, User: user, Audiences: []string{"them"}}, false},
		"none":               {authenticationv1.TokenReviewStatus{Authenticated: true, User: user}, false},
		"not authenticated":  {authenticationv1.TokenReviewStatus{User: user, Audiences: []string{"us"}}, false},
		"nobody in our name": {authenticationv1.TokenReviewStatus{Authenticated: true, Audiences: []string{"us"}}, false},
	}
	for name, tc := range tests {
		a, err := NewTokenReview(reviewer(t, tc.status), "us", time.Now, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		caller, err := a.Authenticate(&http.Request{Header: http.Header{"Authorization": {"Bearer t"}}})
		if taken := err == nil && caller.Owner() == "alice"; taken != tc.taken {
			t.Errorf("%s: caller %+v, error %v; want taken %v", name, caller, err, tc.taken)
		}
	}
	if _, err := NewTokenReview(nil, "", time.Now, nil); err == nil {
		t.Error("no audience was accepted")
	}
}

// Whatever an authorizer looks at makes another caller.
func TestCallerIDs(t *testing.T) {
	t.Parallel()
	users := []authenticationv1.UserInfo{
		{Username: "a"},
		{Username: "b"},
		{Username: "a", UID: "1"},
		{Username: "a", Groups: []string{"g"}},
		{Username: "a", Groups: []string{"g", "h"}},
		{Username: "a", Groups: []string{"gh"}},
		{Username: "a", Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}}},
		{Username: "a", Extra: map[string]authenticationv1.ExtraValue{"k": {"v", "w"}}},
	}
	seen := map[[32]byte]int{}
	for i, u := range users {
		id := newCaller(u).ID()
		if j, ok := seen[id]; ok {
			t.Errorf("%+v and %+v are the same caller", users[j], u)
		}
		seen[id] = i
		if newCaller(*u.DeepCopy()).ID() != id {
			t.Errorf("%+v is two callers", u)
		}
	}
}

func TestNamespaceAndOwnership(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ namespace string }{
		"system:serviceaccount:team-a:builder": {"team-a"},
		"system:serviceaccount:":               {""},
		"system:serviceaccounts":               {""},
		"alice":                                {""},
		"oidc:x#system:serviceaccount:team-a":  {""},
	}
	for user, tc := range tests {
		c := newCaller(authenticationv1.UserInfo{Username: user})
		if got := c.Namespace(); got != tc.namespace {
			t.Errorf("%s: namespace %q, want %q", user, got, tc.namespace)
		}
		if !c.Owns(user) || !c.Owns("") || c.Owns(user+"x") {
			t.Errorf("%s: owns the wrong sessions", user)
		}
	}
	anonymous, err := NewNone().Authenticate(nil)
	if err != nil || !anonymous.Owns("") || anonymous.Owns("alice") || anonymous.Owner() != "" {
		t.Errorf("the anonymous caller owns %q, error %v", anonymous.Owner(), err)
	}
}
