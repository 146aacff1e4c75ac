// SPDX-License-Identifier: Apache-2.0

// Package result reads the messages of functions about resources, such as warnings. They are in a function's
// output, or in the error details of a failed evaluation.
package result

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
	"github.com/krm-function-runner/function-runner/libs/resourcelist"
)

// Severity is the severity of a result.
type Severity string

// The severities, worst first.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Info    Severity = "info"
)

// Record is a function's message about a resource. It has the form in which kpt writes results to results.yaml and
// to a Kptfile's status.
type Record struct {
	Message     string            `yaml:"message,omitempty"`
	Severity    string            `yaml:"severity,omitempty"`
	ResourceRef *Reference        `yaml:"resourceRef,omitempty"`
	Field       *Field            `yaml:"field,omitempty"`
	File        *File             `yaml:"file,omitempty"`
	Tags        map[string]string `yaml:"tags,omitempty"`
}

// Level returns the severity of a result in lower case. It is info for a result without a severity.
func (r Record) Level() Severity { return cmp.Or(Severity(strings.ToLower(r.Severity)), Info) }

// Place names the resource, the field and the file of a result. It is empty if the result names none of them.
func (r Record) Place() string {
	var parts []string
	if r.ResourceRef != nil {
		parts = append(parts, r.ResourceRef.String())
	}
	if r.Field != nil {
		parts = append(parts, r.Field.Path)
	}
	if r.File != nil && r.File.Path != "" {
		parts = append(parts, "("+r.File.Path+")")
	}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), " ")
}

// String returns severity, resource and message for users. It is a single line if the message is a single line.
func (r Record) String() string {
	place := r.Place()
	if place != "" {
		place = " " + place + ":"
	}
	return fmt.Sprintf("[%s]%s %s", r.Level(), place, strings.TrimSpace(r.Message))
}

// Parts of a result. Gateways and fnctl read them in the same way, because both use the types of package resourcelist.
type (
	// Reference names a resource.
	Reference = resourcelist.ResourceRef
	// File identifies a resource by its file and its index in the file.
	File = resourcelist.File
)

// Field identifies a field in a result. Values that are not scalars are encoded as YAML.
type Field struct {
	Path          string `yaml:"path,omitempty"`
	CurrentValue  string `yaml:"currentValue,omitempty"`
	ProposedValue string `yaml:"proposedValue,omitempty"`
}

// FromFailure returns the results of a failed function, which gateways attach to the error as details.
func FromFailure(failure *functionrunnerv1.FunctionFailure) []Record {
	records := make([]Record, 0, len(failure.GetResults()))
	for _, r := range failure.GetResults() {
		record := Record{Message: r.GetMessage(), Severity: r.GetSeverity(), Tags: r.GetTags()}
		if ref := r.GetResourceRef(); ref != nil {
			record.ResourceRef = &Reference{
				APIVersion: ref.GetApiVersion(), Kind: ref.GetKind(), Name: ref.GetName(), Namespace: ref.GetNamespace(),
			}
		}
		if f := r.GetField(); f != nil {
			record.Field = &Field{f.GetPath(), fromJSON(f.GetCurrentValue()), fromJSON(f.GetProposedValue())}
		}
		if f := r.GetFile(); f != nil {
			record.File = &File{Path: f.GetPath(), Index: int(f.GetIndex())}
		}
		records = append(records, record)
	}
	return records
}

// fromJSON converts a JSON value from a gateway to text. Scalars become plain text, and lists and maps become YAML.
func fromJSON(value string) string {
	node, err := yaml.Parse(value)
	if err != nil || value == "" {
		return value
	}
	return plainValue(node.YNode())
}

// plainValue converts a YAML node to text. Scalars become plain text, and lists and maps stay YAML.
func plainValue(node *yaml.Node) string {
	if node.Kind == yaml.ScalarNode {
		return strings.TrimSpace(node.Value)
	}
	clearStyle(node)
	text, err := yaml.NewRNode(node).String()
	if err != nil {
		return fmt.Sprint(err)
	}
	return strings.TrimSpace(text)
}

func clearStyle(node *yaml.Node) {
	node.Style = 0
	for _, child := range node.Content {
		clearStyle(child)
	}
}
