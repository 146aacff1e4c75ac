// SPDX-License-Identifier: Apache-2.0

package resourcelist

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"go.yaml.in/yaml/v3"
)

// decodeResultsField decodes the value of the field "results". Old functions write a mapping whose key "items"
// contains the results, instead of a sequence. If ctx is canceled, decodeResultsField returns the error of ctx.
func (d document) decodeResultsField(ctx context.Context, value *yaml.Node) ([]Result, error) {
	if value != nil && value.Kind == yaml.MappingNode {
		fields, err := topLevel(value)
		if err != nil {
			return nil, fmt.Errorf("read the results: %w", err)
		}
		value = fields["items"]
	}
	if err := checkShape("results", value, yaml.SequenceNode); err != nil || isNull(value) {
		return nil, err
	}
	if err := d.checkResults(value); err != nil {
		return nil, fmt.Errorf("read the results: %w", err)
	}
	return decodeResults(ctx, value.Content)
}

// decodeResults decodes the entries of the field "results" in order, and skips null entries.
func decodeResults(ctx context.Context, entries []*yaml.Node) ([]Result, error) {
	var results []Result
	for _, entry := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var result Result
		if err := entry.Decode(&result); err != nil {
			return nil, fmt.Errorf("read the results: %w", err)
		}
		if aliasTarget(entry).Kind == yaml.MappingNode {
			results = append(results, result)
		}
	}
	return results, nil
}

// aliasTarget returns the node that an alias refers to. It returns any other node unchanged.
func aliasTarget(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

// UnmarshalYAML decodes a reference to a resource. Old SDKs write name and namespace to the field metadata.
func (r *ResourceRef) UnmarshalYAML(node *yaml.Node) error {
	type resourceRef ResourceRef
	var fields struct {
		resourceRef `yaml:",inline"`
		Metadata    resourceRef `yaml:"metadata"`
	}
	err := node.Decode(&fields)
	*r = ResourceRef(fields.resourceRef)
	r.Name = cmp.Or(fields.Metadata.Name, r.Name)
	r.Namespace = cmp.Or(fields.Metadata.Namespace, r.Namespace)
	return err
}

// UnmarshalYAML decodes a field, whose values may have any type. Old SDKs use the key suggestedValue for proposedValue.
func (f *Field) UnmarshalYAML(node *yaml.Node) error {
	var fields struct {
		Path           string `yaml:"path"`
		CurrentValue   any    `yaml:"currentValue"`
		ProposedValue  any    `yaml:"proposedValue"`
		SuggestedValue any    `yaml:"suggestedValue"`
	}
	err := node.Decode(&fields)
	f.Path = fields.Path
	f.CurrentValue = asJSON(fields.CurrentValue)
	f.ProposedValue = cmp.Or(asJSON(fields.SuggestedValue), asJSON(fields.ProposedValue))
	return err
}

// asJSON returns a decoded YAML value as JSON, or an empty string for null. Values that JSON does not support, such as
// infinity and keys that are not strings, become strings.
func asJSON(value any) string {
	if value == nil {
		return ""
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(jsonValue(value)); err != nil {
		return fmt.Sprintf("%q", fmt.Sprint(value))
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// jsonValue replaces the parts of a decoded YAML value that JSON cannot represent, such as infinity, by strings.
func jsonValue(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = jsonValue(v[key])
		}
	case map[any]any:
		object := make(map[string]any, len(v))
		for key := range v {
			object[fmt.Sprint(key)] = jsonValue(v[key])
		}
		return object
	case []any:
		for i := range v {
			v[i] = jsonValue(v[i])
		}
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return fmt.Sprint(v)
		}
	}
	return value
}
