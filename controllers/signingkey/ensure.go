package signingkey

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/api/v1alpha1"
	agent "github.com/berth-dev/berth/sandbox-agent/client"
)

// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch,resourceNames=berth-signing-key,namespace=berth-system
// +kubebuilder:rbac:groups="",resources=secrets,verbs=create,namespace=berth-system

// SecretName is the Secret that holds the ring.
const SecretName = "berth-signing-key"

const (
	keyPrefix = "key-"
	keySuffix = ".pem"
)

// Ensure reads the ring from the Secret in that namespace and makes it, with one
// key, only if there is no Secret. A Secret that is empty or broken is an error:
// to write over it could lock every live session out. The client must not read
// from a cache.
func Ensure(ctx context.Context, c client.Client, namespace string) (*agent.Signer, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: namespace, Name: SecretName}
	err := c.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		if secret, err = create(ctx, c, key); apierrors.IsAlreadyExists(err) {
			secret = &corev1.Secret{}
			err = c.Get(ctx, key, secret)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("signing key Secret %s: %w", key, err)
	}
	return parse(secret)
}

func parse(secret *corev1.Secret) (*agent.Signer, error) {
	signer, err := agent.NewSigner(secret.Data)
	if err != nil {
		return nil, fmt.Errorf("signing key Secret %s/%s can't be used: %w; restore it, or delete it and restart berth-controller to have a new one made",
			secret.Namespace, secret.Name, err)
	}
	return signer, nil
}

func create(ctx context.Context, c client.Client, key client.ObjectKey) (*corev1.Secret, error) {
	kid, err := nextKeyID(ctx, c)
	if err != nil {
		return nil, err
	}
	pem, err := agent.GenerateKey()
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name,
			Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByBerth},
		},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{kid + keySuffix: pem},
	}
	return secret, c.Create(ctx, secret)
}

// nextKeyID is key-0001, or, when the Secret was lost while pods live, the number
// after the highest that a Sandbox's pod was born with: the same kid must never name
// two keys.
func nextKeyID(ctx context.Context, c client.Client) (string, error) {
	pods := &metav1.PartialObjectMetadataList{}
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := c.List(ctx, pods, client.HasLabels{v1alpha1.LabelSandboxUID}); err != nil {
		return "", fmt.Errorf("list pods for the keys they were born with: %w", err)
	}
	highest := 0
	for i := range pods.Items {
		digits, ok := strings.CutPrefix(pods.Items[i].Annotations[v1alpha1.AnnotationKeyID], keyPrefix)
		if number, err := strconv.Atoi(digits); ok && err == nil {
			highest = max(highest, number)
		}
	}
	return fmt.Sprintf("%s%04d", keyPrefix, highest+1), nil
}
