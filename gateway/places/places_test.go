package places

import (
	"context"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/berth-dev/berth/gateway/authn"
)

// One caller can't take all places, whatever tokens it comes with; what is left is
// free for another, and no more than all there are.
func TestOneCallerLeavesPlacesForOthers(t *testing.T) {
	t.Parallel()
	as := func(name, token string) context.Context {
		return authn.WithCaller(t.Context(), &authn.Caller{User: authenticationv1.UserInfo{
			Username: name, Extra: map[string]authenticationv1.ExtraValue{"authentication.kubernetes.io/credential-id": {token}},
		}})
	}
	p := New(3, 2)
	var leave []func()
	for _, step := range []struct {
		caller, token string
		want          bool
	}{{"alice", "1", true}, {"alice", "2", true}, {"alice", "3", false}, {"bob", "1", true}, {"carol", "1", false}} {
		l, ok := p.Enter(as(step.caller, step.token))
		if ok != step.want {
			t.Errorf("%s: a place %v, want %v", step.caller, ok, step.want)
		}
		if ok {
			leave = append(leave, l)
		}
	}
	leave[0]()
	if l, ok := p.Enter(as("alice", "4")); !ok {
		t.Error("alice finds no place after she left one")
	} else {
		l()
	}
	for _, l := range leave[1:] {
		l()
	}
	if p.all != 0 || len(p.held) != 0 {
		t.Errorf("%d places are held, by %v, after all left", p.all, p.held)
	}
}
