package sandbox

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/berth-dev/berth/api/v1alpha1"
)

func TestARefusalIsToldFromAFailure(t *testing.T) {
	t.Parallel()
	pods := corev1.Resource("pods")
	forbidden := func(words string) error { return apierrors.NewForbidden(pods, "p", errors.New(words)) }
	for name, c := range map[string]struct {
		err    error
		reason string
	}{
		"quota":           {forbidden("exceeded quota: a, requested: pods=1, used: pods=1, limited: pods=1"), v1alpha1.ReasonQuotaExceeded},
		"quota asks more": {forbidden("failed quota: a: must specify limits.cpu"), v1alpha1.ReasonQuotaExceeded},
		"quota too new":   {forbidden("status unknown for quota: a, resources: pods"), v1alpha1.ReasonQuotaExceeded},
		"pod security":    {forbidden(`violates PodSecurity "restricted:latest"`), v1alpha1.ReasonPodForbidden},
		"invalid":         {apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind("Pod").GroupKind(), "p", nil), v1alpha1.ReasonPodForbidden},
		"webhook's 400":   {apierrors.NewBadRequest("no"), v1alpha1.ReasonPodForbidden},
		"time-out":        {apierrors.NewTimeoutError("slow", 1), ""},
		"busy":            {apierrors.NewTooManyRequestsError("busy"), ""},
		"network":         {errors.New("connection reset"), ""},
	} {
		got := ""
		if cause := refusal(c.err); cause != nil {
			got = cause.Reason
		}
		if got != c.reason {
			t.Errorf("%s: reason %q, want %q", name, got, c.reason)
		}
	}
}
