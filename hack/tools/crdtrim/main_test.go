package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTrimKeepsOwnDescriptionsAndDropsForeignOnes(t *testing.T) {
	t.Parallel()
	got, err := trim([]byte(`
kind: CustomResourceDefinition
spec:
  versions:
  - schema:
      openAPIV3Schema:
        description: the kind
        properties:
          podTemplate:
            description: the pod
            properties:
              description:
                description: a property that is called so
                type: string
              image:
                description: foreign
                type: string
          egress:
            description: the class
            type: string
`), []string{"podTemplate"})
	if err != nil {
		t.Fatal(err)
	}
	want := `---
kind: CustomResourceDefinition
spec:
  versions:
  - schema:
      openAPIV3Schema:
        description: the kind
        properties:
          egress:
            description: the class
            type: string
          podTemplate:
            description: the pod
            properties:
              description:
                type: string
              image:
                type: string
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("trimmed CRD differs (-want +got):\n%s", diff)
	}
}

func TestTrimLeavesOtherDocumentsAlone(t *testing.T) {
	t.Parallel()
	got, err := trim([]byte("kind: Kustomization\n"), []string{"podTemplate"})
	if err != nil || got != nil {
		t.Errorf("trim of a Kustomization = %q, %v; want it left alone", got, err)
	}
}
