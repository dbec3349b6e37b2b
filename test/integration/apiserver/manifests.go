package apiserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Render gives the objects of a kustomization, in its order; dir is relative to
// the checkout. It runs the kustomize that hack/tools pins.
func Render(ctx context.Context, dir string) ([]*unstructured.Unstructured, error) {
	cmd := exec.CommandContext(ctx, "go", "tool", "kustomize", "build", filepath.Join(Root, dir))
	cmd.Dir = filepath.Join(Root, "hack", "tools")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("kustomize build %s: %w: %s", dir, err, stderr.String())
	}
	return decode(output)
}

// Read gives the objects of a file; path is relative to the checkout.
func Read(path string) ([]*unstructured.Unstructured, error) {
	content, err := os.ReadFile(filepath.Join(Root, path))
	if err != nil {
		return nil, err
	}
	objects, err := decode(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return objects, nil
}

func decode(content []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), len(content)+1)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// Apply applies objects one after the other on the server's side, with strict
// field validation: a misspelt field is an error.
func Apply(ctx context.Context, c client.Client, objects []*unstructured.Unstructured, opts ...client.ApplyOption) error {
	strict := client.WithFieldValidation(c, "Strict")
	opts = append([]client.ApplyOption{client.FieldOwner("berth-test"), client.ForceOwnership}, opts...)
	for _, object := range objects {
		if err := strict.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), opts...); err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), client.ObjectKeyFromObject(object), err)
		}
	}
	return nil
}
