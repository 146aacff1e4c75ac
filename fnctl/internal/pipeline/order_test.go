// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/kyaml/fn/framework"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
)

// nested has two packages in a package, one of them around a third. Each reports what it gets.
const nested = `
-- Kptfile --
apiVersion: kpt.dev/v1
kind: Kptfile
metadata: {name: root ANNOTATIONS}
pipeline: {mutators: [{image: see}]}
-- z.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: root-z}
-- a/Kptfile --
apiVersion: kpt.dev/v1
kind: Kptfile
metadata: {name: a}
pipeline: {mutators: [{image: see}]}
-- a/deep/Kptfile --
apiVersion: kpt.dev/v1
kind: Kptfile
metadata: {name: deep}
pipeline: {mutators: [{image: see}]}
-- b/Kptfile --
apiVersion: kpt.dev/v1
kind: Kptfile
metadata: {name: b, annotations: {kpt.dev/bfs-rendering: "true"}}
pipeline: {mutators: [{image: see}]}
`

const outerFirst = `, annotations: {kpt.dev/bfs-rendering: "true"}`

// seen returns a function that records the names of its input.
func seen(inputs *[]string) *evaluator {
	return &evaluator{functions: map[string]framework.ResourceListProcessorFunc{
		"see": func(list *framework.ResourceList) error {
			*inputs = append(*inputs, strings.Join(names(list.Items), " "))
			return nil
		},
	}}
}

func names(resources []*yaml.RNode) []string {
	var all []string
	for _, r := range resources {
		all = append(all, r.GetName())
	}
	return all
}

// TestOrders renders nested packages in both orders. A package's own resources come before those of
// the packages inside it, and only the outermost package chooses the order.
func TestOrders(t *testing.T) {
	for annotation, want := range map[string][]string{
		"":         {"deep", "a deep", "b", "root root-z a deep b"},
		outerFirst: {"root root-z a deep b", "a deep", "b", "deep"},
	} {
		var inputs []string
		archive := strings.Replace(nested, " ANNOTATIONS", annotation, 1)
		if _, err := render(t, archive, seen(&inputs), &observer{}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, inputs); diff != "" {
			t.Errorf("inputs with %q (-want +got):\n%s", annotation, diff)
		}
	}
}

// TestOuterPackagesChangeInnerOnes renders outer packages first: what one changes, creates and
// deletes, the packages inside it see.
func TestOuterPackagesChangeInnerOnes(t *testing.T) {
	const archive = `
-- Kptfile --
apiVersion: kpt.dev/v1
kind: Kptfile
metadata: {name: root, annotations: {kpt.dev/bfs-rendering: "true"}}
pipeline: {mutators: [{image: change}]}
-- a/Kptfile --
apiVersion: kpt.dev/v1
kind: Kptfile
metadata: {name: a}
pipeline: {mutators: [{image: see}]}
-- a/old.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: old}
-- b/Kptfile --
apiVersion: kpt.dev/v1
kind: Kptfile
metadata: {name: b}
pipeline: {mutators: [{image: see}]}
`
	var inputs []string
	e := seen(&inputs)
	e.functions["change"] = func(list *framework.ResourceList) error {
		kept := list.Items[:2:2] // without old and b
		for name, pkg := range map[string]string{"new": "/a", "lost": "/nowhere"} {
			item := yaml.MustParse("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n")
			if err := item.PipeE(yaml.SetAnnotation("internal.config.kubernetes.io/package-path", pkg)); err != nil {
				return err
			}
			kept = append(kept, item)
		}
		list.Items = kept
		return nil
	}
	resources, err := render(t, archive, e, &observer{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a new", ""}, inputs); diff != "" {
		t.Errorf("inputs of a and b (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"root", "lost", "a", "new"}, names(resources)); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
}

// TestFailureLeavesWhatWasRendered renders up to a mutator that fails in the middle.
func TestFailureLeavesWhatWasRendered(t *testing.T) {
	for annotation, want := range map[string]string{
		"":         "root root-z a deep",
		outerFirst: "root root-z a b deep",
	} {
		bad := errors.New("bad")
		e := &evaluator{functions: map[string]framework.ResourceListProcessorFunc{
			"see": func(list *framework.ResourceList) error {
				if list.Items[0].GetName() == "a" {
					return bad
				}
				return list.Items[0].PipeE(yaml.SetLabel("seen", "yes"))
			},
		}}
		resources, err := render(t, strings.Replace(nested, " ANNOTATIONS", annotation, 1), e, &observer{})
		if !errors.Is(err, bad) {
			t.Errorf("Render = %v, want the function's error", err)
		}
		if got := strings.Join(names(resources), " "); got != want {
			t.Errorf("resources %q, want %q", got, want)
		}
	}
}

// TestSelectionMarksDoNotStay lets a selective mutator fail: its marks must not reach files.
func TestSelectionMarksDoNotStay(t *testing.T) {
	e := &evaluator{functions: map[string]framework.ResourceListProcessorFunc{
		"split": func(*framework.ResourceList) error { return errors.New("bad") },
	}}
	resources, _ := render(t, selective, e, &observer{})
	for _, r := range resources {
		if id := r.GetAnnotations()["internal.config.kubernetes.io/kpt-resource-id"]; id != "" {
			t.Errorf("%s has the id %s", r.GetName(), id)
		}
	}
}

func TestPlanRejects(t *testing.T) {
	const kptfile = "-- Kptfile --\napiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: p}\npipeline: {mutators: ["
	for function, want := range map[string]string{
		"{exec: ./script.sh}":            `pipeline.mutators[0].exec "./script.sh" is a program of this machine`,
		"{image: a, configPath: b.yaml}": `pipeline.mutators[0].configPath "b.yaml" is not a resource file`,
	} {
		if _, err := plan(t, kptfile+function+"]}\n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("NewPlan of %s = %v, want %q", function, err, want)
		}
	}
}

// TestImagePrefix puts a prefix before images without a repository.
func TestImagePrefix(t *testing.T) {
	p := pipeline.Options{ImagePrefix: "example.com/fns"}
	for image, want := range map[string]string{
		"set:v1": "example.com/fns/set:v1", "other.example/set:v1": "other.example/set:v1", "": "",
	} {
		call, err := p.NewCall(nil, function(image))
		if err != nil || call.Function.Image != want {
			t.Errorf("image %q becomes %q, %v, want %q", image, call.Function.Image, err, want)
		}
	}
}
