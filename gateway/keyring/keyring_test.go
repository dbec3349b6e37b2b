package keyring

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agent "github.com/berth-dev/berth/sandbox-agent/client"
)

func secret(t *testing.T, keys ...string) *corev1.Secret {
	t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "berth-system", Name: "key"}, Data: map[string][]byte{}}
	for _, k := range keys {
		pem, err := agent.GenerateKey()
		if err != nil {
			t.Fatal(err)
		}
		s.Data[k] = pem
	}
	return s
}

func newRing() (*Ring, *[]string) {
	var used []string
	return New("berth-system", "key", slog.New(slog.DiscardHandler), func(s *agent.Signer) { used = append(used, s.NewestKeyID()) }), &used
}

// R9: a gateway that finds an empty or unreadable key does not start.
func TestUnusableKeyIsRefusedAtStart(t *testing.T) {
	t.Parallel()
	tests := map[string]*corev1.Secret{
		"empty":      secret(t),
		"no key":     {ObjectMeta: secret(t).ObjectMeta, Data: map[string][]byte{"key-0001.pem": nil}},
		"other name": secret(t, "tls.key"),
	}
	for name, s := range tests {
		ring, used := newRing()
		if err := ring.Add(s); err != nil {
			t.Errorf("%s: Add: %v", name, err)
		}
		err := ring.Wait(t.Context())
		if err == nil || !strings.Contains(err.Error(), "secret berth-system/key can't be used") || len(*used) != 0 {
			t.Errorf("%s: error %v, used %v; want a refusal that names the Secret", name, err, *used)
		}
	}
}

// A rotation is taken up at once; a version that can't be used, or none, leaves
// the keys that were read before.
func TestRotation(t *testing.T) {
	t.Parallel()
	ring, used := newRing()
	stranger := secret(t, "key-0009.pem")
	stranger.Name = "other"
	if err := ring.Replace([]any{stranger, secret(t, "key-0001.pem")}, ""); err != nil {
		t.Fatal(err)
	}
	if err := ring.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, step := range []func() error{
		func() error { return ring.Update(secret(t, "key-0001.pem", "key-0002.pem")) },
		func() error { return ring.Update(secret(t)) },
		func() error { return ring.Delete(secret(t)) },
		func() error { return ring.Replace(nil, "") },
	} {
		if err := step(); err != nil {
			t.Error(err)
		}
	}
	if got := strings.Join(*used, " "); got != "key-0001 key-0002" {
		t.Errorf("used %q, want the first ring and the rotated one", got)
	}
}

// A Secret that is not there yet is waited for; giving up says what it waited for.
func TestMissingKeyIsWaitedFor(t *testing.T) {
	t.Parallel()
	ring, _ := newRing()
	if err := ring.Replace(nil, ""); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := ring.Wait(ctx); err == nil || !strings.Contains(err.Error(), "did not appear: is the controller running?") {
		t.Errorf("error %v", err)
	}
}
