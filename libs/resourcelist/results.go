// SPDX-License-Identifier: Apache-2.0

package resourcelist

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"go.yaml.in/yaml/v3"
)

// wireResult is a result as functions write it in YAML.
type wireResult struct {
	Message     string            `yaml:"message"`
	Severity    string            `yaml:"severity"`
	ResourceRef *ResourceRef      `yaml:"resourceRef"`
	Field       *wireField        `yaml:"field"`
	File        *File             `yaml:"file"`
	Tags        map[string]string `yaml:"tags"`
}

// wireField is the field of a result as functions write it in YAML.
type wireField struct {
	Path          string `yaml:"path"`
	CurrentValue  any    `yaml:"currentValue"`
	ProposedValue any    `yaml:"proposedValue"`
}

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
		var wire wireResult
		if err := entry.Decode(&wire); err != nil {
			return nil, fmt.Errorf("read the results: %w", err)
		}
		if !isNull(aliasTarget(entry)) {
			results = append(results, wire.toResult())
		}
	}
	return results, nil
}

// aliasTarget returns the node that an alias refers to. It returns all other nodes unchanged.
func aliasTarget(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

func (w wireResult) toResult() Result {
	r := Result{Message: w.Message, Severity: w.Severity, ResourceRef: w.ResourceRef, File: w.File, Tags: w.Tags}
	if w.Field != nil {
		r.Field = &Field{
			Path:          w.Field.Path,
			CurrentValue:  asJSON(w.Field.CurrentValue),
			ProposedValue: asJSON(w.Field.ProposedValue),
		}
	}
	return r
}

// asJSON returns a decoded YAML value as JSON, or an empty string for null. Values that JSON does not support, such
// as infinity and keys that are not strings, become strings.
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
