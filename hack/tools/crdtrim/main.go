// Command crdtrim removes the descriptions of foreign types from generated CRDs.
//
// A pod template's own documentation is ten times as long as ours and would push
// a CRD past what fits the annotation of a client-side kubectl apply. What is
// said about our own fields stays, so that kubectl explain is useful.
//
//	crdtrim DIR FIELD...
//
// In every *.yaml of DIR, fields below a property of the name FIELD lose their
// description; FIELD itself keeps its own.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: crdtrim DIR FIELD...")
		os.Exit(2)
	}
	if err := trimDir(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "crdtrim: %v\n", err)
		os.Exit(1)
	}
}

// trimDir rewrites each CRD of a directory in place.
func trimDir(dir string, fields []string) error {
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		trimmed, err := trim(data, fields)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if trimmed == nil {
			continue
		}
		if err := os.WriteFile(path, trimmed, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// trim gives the CRD without the descriptions below fields, or nil if the
// document is no CRD.
func trim(data []byte, fields []string) ([]byte, error) {
	var document map[string]any
	if err := yaml.Unmarshal(data, &document); err != nil {
		return nil, err
	}
	if document["kind"] != "CustomResourceDefinition" {
		return nil, nil
	}
	trimBelow(document, fields)
	body, err := yaml.Marshal(document)
	if err != nil {
		return nil, err
	}
	return append([]byte("---\n"), body...), nil
}

// trimBelow walks to the properties named by fields and strips what they hold.
func trimBelow(node any, fields []string) {
	switch node := node.(type) {
	case map[string]any:
		properties, _ := node["properties"].(map[string]any)
		for name, property := range properties {
			if schema, ok := property.(map[string]any); ok && slices.Contains(fields, name) {
				description := schema["description"]
				strip(schema)
				if description != nil {
					schema["description"] = description
				}
			}
		}
		for _, child := range node {
			trimBelow(child, fields)
		}
	case []any:
		for _, child := range node {
			trimBelow(child, fields)
		}
	}
}

// strip removes the description of a schema and of all schemas in it. A
// property that is itself called "description" is a schema, not a text, and stays.
func strip(node any) {
	switch node := node.(type) {
	case map[string]any:
		if _, isText := node["description"].(string); isText {
			delete(node, "description")
		}
		for _, child := range node {
			strip(child)
		}
	case []any:
		for _, child := range node {
			strip(child)
		}
	}
}
