// SPDX-License-Identifier: Apache-2.0

// Package explain shows the changes of each function of a rendering, on the terminal or on a web page. flag.go
// contains the flag --explain.
package explain

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/diff"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
	"github.com/krm-function-runner/function-runner/fnctl/internal/result"
	"github.com/krm-function-runner/function-runner/libs/excerpt"
)

// Title returns the names of a step's function and package, for display.
func Title(step pipeline.Step) string {
	title := step.Call.Function.FullTitle()
	if path := step.Call.Package.Path; path != "." {
		title += " in ./" + path
	}
	return title
}

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

type step struct {
	Number  int
	Title   string
	Failed  bool
	Problem string
	Seconds string
	Results []result.Record
	Log     string
	Fields  []field
	Files   []file
}

type file struct {
	Path  string
	Lines []line
}

// line is a line of a diff. Class is its CSS class, which selects the colour on the page.
type line struct{ Class, Text string }

var classes = map[diff.Kind]string{
	diff.Header: "header", diff.Hunk: "hunk", diff.Added: "added", diff.Removed: "removed", diff.Context: "context",
}

// Write writes the changes of each function of a rendering as one HTML page, which needs no network. If the
// rendering failed, failure is its error.
func Write(out io.Writer, dir string, rendering *pipeline.Rendering, failure error) error {
	data := struct {
		Dir     string
		Failure string
		Steps   []step
	}{Dir: dir}
	if failure != nil {
		data.Failure = excerpt.Visible(failure.Error())
	}
	for i, s := range rendering.Steps() {
		data.Steps = append(data.Steps, newStep(i+1, s))
	}
	return page.Execute(out, data)
}

func newStep(number int, s pipeline.Step) step {
	shown := step{
		Number: number, Title: excerpt.Visible(Title(s)), Failed: s.Outcome.Err != nil,
		Seconds: fmt.Sprintf("%.2f s", s.Outcome.Elapsed.Seconds()),
		Results: slices.Clone(s.Outcome.Results), Log: excerpt.Visible(string(s.Outcome.Log)),
	}
	if s.Outcome.Err != nil {
		shown.Problem = excerpt.Visible(s.Outcome.Err.Error())
	}
	for i := range shown.Results {
		shown.Results[i].Message = excerpt.Visible(shown.Results[i].Message)
	}
	for _, change := range s.Changes {
		f := file{Path: excerpt.Visible(change.Path)}
		for _, l := range diff.Lines(diff.Unified(change)) {
			f.Lines = append(f.Lines, line{classes[l.Kind], excerpt.Visible(l.Text)})
		}
		shown.Files = append(shown.Files, f)
		shown.Fields = append(shown.Fields, changedFields(change)...)
	}
	return shown
}

// field is a field that a function changed. Before is empty for a new field, and After for a removed field.
type field struct{ Resource, Path, Before, After string }

// changedFields returns the fields that a change of a file added, changed or removed, sorted by resource and path.
func changedFields(change pkgtree.Change) []field {
	before, after := fieldsOf(change.Before), fieldsOf(change.After)
	all := maps.Clone(before)
	maps.Copy(all, after)
	var changed []field
	for key := range all {
		if before[key] != after[key] {
			key.Before, key.After = excerpt.Visible(before[key]), excerpt.Visible(after[key])
			changed = append(changed, key)
		}
	}
	slices.SortFunc(changed, func(a, b field) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Path, b.Path))
	})
	return changed
}

// fieldsOf returns the scalar values of all resources in a file, by resource and field path.
func fieldsOf(data []byte) map[field]string {
	resources, err := pkgtree.Parse(data)
	if err != nil {
		return nil // the diff still shows the change
	}
	fields, seen := map[field]string{}, map[string]int{}
	for _, r := range resources {
		if r.YNode().Kind != yaml.MappingNode {
			continue
		}
		name := r.GetKind() + " " + r.GetName() // the namespace is omitted because functions often change it
		if seen[name]++; seen[name] > 1 {
			name = fmt.Sprintf("%s (%d)", name, seen[name])
		}
		addFields(fields, excerpt.Visible(name), "", r.YNode())
	}
	return fields
}

func addFields(fields map[field]string, resource, path string, node *yaml.Node) {
	switch {
	case node.Kind == yaml.MappingNode && len(node.Content) > 0:
		for i := 0; i+1 < len(node.Content); i += 2 {
			addFields(fields, resource, strings.TrimPrefix(path+"."+node.Content[i].Value, "."), node.Content[i+1])
		}
	case node.Kind == yaml.SequenceNode && len(node.Content) > 0:
		for i, item := range node.Content {
			addFields(fields, resource, fmt.Sprintf("%s[%d]", path, i), item)
		}
	case node.Kind == yaml.ScalarNode:
		fields[field{Resource: resource, Path: excerpt.Visible(path)}] = node.Value
	}
}
