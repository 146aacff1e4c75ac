// SPDX-License-Identifier: Apache-2.0

package resourcelist

import (
	"cmp"
	"slices"
	"strings"
)

// Result is an entry of the field "results" of a ResourceList. A function writes it to report a problem of a
// resource or of the whole package.
type Result struct {
	Message string `yaml:"message"`
	// Severity is by convention error, warning or info. The default is info.
	Severity    string            `yaml:"severity"`
	ResourceRef *ResourceRef      `yaml:"resourceRef"`
	Field       *Field            `yaml:"field"`
	File        *File             `yaml:"file"`
	Tags        map[string]string `yaml:"tags"`
}

// ResourceRef names the resource that a result is about.
type ResourceRef struct {
	APIVersion string `yaml:"apiVersion,omitempty"`
	Kind       string `yaml:"kind,omitempty"`
	Name       string `yaml:"name,omitempty"`
	Namespace  string `yaml:"namespace,omitempty"`
}

// String returns "APIVERSION/KIND/NAMESPACE/NAME", without empty parts.
func (r ResourceRef) String() string { return joinSet("/", r.APIVersion, r.Kind, r.Namespace, r.Name) }

// Field describes the field of the resource that a result is about.
type Field struct {
	Path string
	// CurrentValue and ProposedValue contain JSON. They are empty if the function did not set them.
	CurrentValue  string
	ProposedValue string
}

// File describes the file of the package that a result refers to.
type File struct {
	Path string `yaml:"path,omitempty"`
	// Index is the position of the resource in the file. It is 0 for the first resource.
	Index int `yaml:"index,omitempty"`
}

// String formats the result as "[SEVERITY] APIVERSION/KIND/NAMESPACE/NAME FIELDPATH: MESSAGE", without empty parts.
// The text is a single line unless the message has several lines.
func (r Result) String() string {
	parts := []string{"[" + r.Level() + "]"}
	if r.ResourceRef != nil {
		parts = append(parts, r.ResourceRef.String())
	}
	if r.Field != nil {
		parts = append(parts, r.Field.Path)
	}
	return joinSet(" ", parts...) + ": " + r.Message
}

// FormatResults formats the results for users, with a blank line between two results.
func FormatResults(results []Result) string {
	texts := make([]string, len(results))
	for i, r := range results {
		texts[i] = r.String()
	}
	return strings.Join(texts, "\n\n")
}

// joinSet joins the parts that are not empty.
func joinSet(separator string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), separator)
}

// severities contains the conventional severities, in ascending order.
var severities = []string{"info", "warning", "error"}

// Level returns the result's severity, or "info" if the function did not set it.
func (r Result) Level() string { return cmp.Or(r.Severity, severities[0]) }

// Worst returns the worst severity among the results, or "none" if there are no results. A severity other than
// error, warning and info counts as info.
func Worst(results []Result) string {
	worst := -1
	for _, r := range results {
		worst = max(worst, slices.Index(severities, r.Level()), 0)
	}
	if worst < 0 {
		return "none"
	}
	return severities[worst]
}
