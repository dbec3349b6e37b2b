package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Objects reads every object of a YAML file. Those without a namespace get the
// given one; only namespaced kinds are expected.
func Objects(path, namespace string) ([]*unstructured.Unstructured, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), len(content)+1)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if len(object.Object) == 0 {
			continue
		}
		if object.GetNamespace() == "" {
			object.SetNamespace(namespace)
		}
		objects = append(objects, object)
	}
}

// ApplyObject applies an object on the server's side, as `kubectl apply --server-side`.
func (c *Cluster) ApplyObject(ctx context.Context, object *unstructured.Unstructured) error {
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object),
		client.FieldOwner("berth-test"), client.ForceOwnership)
}
