package session

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	berthv1alpha1 "github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/gateway/authn"
)

// R14: who has just mended a session is not told of the old trouble because the
// watch lags; while it lasts, he is.
func TestHopelessSessionIsReadAnewBeforeItIsRefused(t *testing.T) {
	t.Parallel()
	mended := sandbox("u", "pod-2")
	suspended := sandbox("u", "")
	suspended.Status.ObservedGeneration = ptr.To[int64](0)
	suspended.Status.Conditions = []metav1.Condition{
		{Type: berthv1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: berthv1alpha1.ReasonSuspended},
	}
	for name, truth := range map[string]*berthv1alpha1.Sandbox{"mended": mended, "as it was": suspended} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scheme := runtime.NewScheme()
			if err := berthv1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			s := NewStore()
			put(t, s, suspended)
			r := NewResolver(fake.NewClientBuilder().WithScheme(scheme).WithObjects(truth.DeepCopy()).Build(), s, Options{
				ReadyTimeout: time.Minute, Observe: func(string, string, time.Duration) {}, Log: slog.New(slog.DiscardHandler),
			})
			got, err := r.Resolve(t.Context(), Request{Key: key, Caller: &authn.Caller{}})
			if truth == mended {
				if err != nil || got.PodUID != "pod-2" {
					t.Fatalf("got %+v and error %v, want the pod that the API server has", got, err)
				}
				return
			}
			var notReady *NotReadyError
			if !errors.As(err, &notReady) || notReady.Reason != berthv1alpha1.ReasonSuspended {
				t.Fatalf("error %v, want %s", err, berthv1alpha1.ReasonSuspended)
			}
		})
	}
}
