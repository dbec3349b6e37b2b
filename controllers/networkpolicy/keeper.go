package networkpolicy

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/api/v1alpha1"
)

// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch;create;patch;delete

// fieldOwner is the controller's name in server-side apply.
const fieldOwner = client.FieldOwner("berth-controller")

// Keeper knows which policies should be there and puts them there.
type Keeper struct {
	client  client.Client
	options Options
}

// NewKeeper gives a Keeper that reads through the client's cache.
func NewKeeper(c client.Client, options Options) *Keeper {
	return &Keeper{client: c, options: options}
}

// Missing lists the policies that a pod of that class needs and that are not
// there as they should be. It only reads.
func (k *Keeper) Missing(ctx context.Context, namespace string, class v1alpha1.EgressClass) ([]*networkingv1.NetworkPolicy, error) {
	wanted := []*networkingv1.NetworkPolicy{Baseline(namespace, k.options)}
	if additive := ForClass(namespace, class, k.options); additive != nil {
		wanted = append(wanted, additive)
	}
	var missing []*networkingv1.NetworkPolicy
	for _, policy := range wanted {
		current, err := k.Current(ctx, policy)
		if err != nil {
			return nil, err
		}
		if !current {
			missing = append(missing, policy)
		}
	}
	return missing, nil
}

// Current tells whether the policy is stored as it is wanted.
func (k *Keeper) Current(ctx context.Context, wanted *networkingv1.NetworkPolicy) (bool, error) {
	stored := &networkingv1.NetworkPolicy{}
	err := k.client.Get(ctx, client.ObjectKeyFromObject(wanted), stored)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read NetworkPolicy %s/%s: %w", wanted.Namespace, wanted.Name, err)
	}
	return stored.DeletionTimestamp.IsZero() &&
		equality.Semantic.DeepEqual(stored.Spec, wanted.Spec) &&
		equality.Semantic.DeepDerivative(wanted.Labels, stored.Labels) &&
		equality.Semantic.DeepDerivative(wanted.OwnerReferences, stored.OwnerReferences), nil
}

// Apply writes the policy by server-side apply, taking back fields that others
// changed. In a namespace that is being deleted it may write nothing: no pod can be
// created there any more.
func (k *Keeper) Apply(ctx context.Context, policy *networkingv1.NetworkPolicy) error {
	data, err := applyBody(policy)
	if err == nil {
		err = k.client.Patch(ctx, policy.DeepCopy(), client.RawPatch(types.ApplyPatchType, data), fieldOwner, client.ForceOwnership)
	}
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("apply NetworkPolicy %s/%s: %w", policy.Namespace, policy.Name, err)
	}
	return nil
}

// applyBody says the empty lists of rules too. What server-side apply isn't told
// of it leaves alone, so a rule that somebody added to a policy without rules
// would stay, and apply configurations leave empty lists out.
func applyBody(policy *networkingv1.NetworkPolicy) ([]byte, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(policy)
	if err != nil {
		return nil, err
	}
	spec, _ := object["spec"].(map[string]any)
	for _, rules := range []string{"ingress", "egress"} {
		if _, said := spec[rules]; !said {
			spec[rules] = []any{}
		}
	}
	return json.Marshal(object)
}
