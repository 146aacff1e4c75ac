// SPDX-License-Identifier: Apache-2.0

package result

import (
	"fmt"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// item is a result as in ResourceLists, in the current and the older form.
type item struct {
	Message     string `yaml:"message"`
	Severity    string `yaml:"severity"`
	ResourceRef struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string `yaml:"kind"`
		Namespace  string `yaml:"namespace"`
		Name       string `yaml:"name"`
		// Metadata holds namespace and name in the older form.
		Metadata struct {
			Namespace string `yaml:"namespace"`
			Name      string `yaml:"name"`
		} `yaml:"metadata"`
	} `yaml:"resourceRef"`
	Field struct {
		Path string `yaml:"path"`
	} `yaml:"field"`
	File struct {
		Path string `yaml:"path"`
	} `yaml:"file"`
}

// FromYAML returns the results of a ResourceList: a list or, from older functions, a map with the
// list as items. A nil node has none.
func FromYAML(node *yaml.RNode) ([]Result, error) {
	if node.IsNilOrEmpty() {
		return nil, nil
	}
	if node.YNode().Kind == yaml.MappingNode {
		field := node.Field("items")
		if field.IsNilOrEmpty() {
			return nil, nil
		}
		node = field.Value
	}
	var items []item
	if err := node.YNode().Decode(&items); err != nil {
		return nil, fmt.Errorf("the results do not match the specification: %w", err)
	}
	results := make([]Result, 0, len(items))
	for _, i := range items {
		results = append(results, i.result())
	}
	return results, nil
}

func (i item) result() Result {
	ref := i.ResourceRef
	if ref.Name == "" {
		ref.Namespace, ref.Name = ref.Metadata.Namespace, ref.Metadata.Name
	}
	return Result{
		Message:  i.Message,
		Severity: severity(i.Severity),
		Resource: join(ref.APIVersion, ref.Kind, ref.Namespace, ref.Name),
		Field:    i.Field.Path,
		File:     i.File.Path,
	}
}
