// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/kustomize/kyaml/fn/framework"
	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
	"github.com/krm-function-runner/function-runner/fnctl/internal/result"
)

// evaluator runs Go functions in place of images and records their input. Unlike the current SDK,
// it does not change their output.
type evaluator struct {
	functions map[string]framework.ResourceListProcessorFunc
	requests  []pipeline.Request
}

func (e *evaluator) Evaluate(_ context.Context, req pipeline.Request) (pipeline.Response, error) {
	e.requests = append(e.requests, req)
	f, ok := e.functions[req.Image]
	if !ok {
		return pipeline.Response{}, fmt.Errorf("no function %s", req.Image)
	}
	var out bytes.Buffer
	source := &kio.ByteReadWriter{Reader: bytes.NewReader(req.ResourceList), Writer: &out, KeepReaderAnnotations: true}
	items, err := source.Read()
	if err != nil {
		return pipeline.Response{}, err
	}
	list := &framework.ResourceList{Items: items, FunctionConfig: source.FunctionConfig}
	if err := f(list); err != nil {
		return pipeline.Response{}, err
	}
	err = source.Write(list.Items)
	return pipeline.Response{ResourceList: out.Bytes()}, err
}

// observer records progress as lines.
type observer struct{ lines []string }

func (o *observer) Entered(p *pipeline.Plan) { o.lines = append(o.lines, "package "+p.Package.Path) }

func (o *observer) Started(c pipeline.Call, n int) {
	o.lines = append(o.lines, fmt.Sprintf("%s on %d", c.Function.Image, n))
}

func (o *observer) Waiting(string) {}

func (o *observer) Finished(c pipeline.Call, outcome pipeline.Outcome) {
	if outcome.Err != nil {
		o.lines = append(o.lines, c.Function.Image+" failed")
	}
	for _, r := range outcome.Results {
		o.lines = append(o.lines, r.String())
	}
}

// plan writes the archive's files to a directory and plans the package there.
func plan(t *testing.T, archive string) (*pipeline.Plan, error) {
	t.Helper()
	dir := t.TempDir()
	if err := txtar.Write(txtar.Parse([]byte(archive)), dir); err != nil {
		t.Fatal(err)
	}
	tree, err := pkgtree.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return pipeline.NewPlan(tree.Root, pipeline.Options{})
}

// render renders a package that can be planned.
func render(t *testing.T, archive string, e *evaluator, o *observer) ([]*yaml.RNode, error) {
	t.Helper()
	p, err := plan(t, archive)
	if err != nil {
		t.Fatal(err)
	}
	rendering, err := (&pipeline.Renderer{Evaluator: e, Observer: o}).Render(t.Context(), p)
	return rendering.Resources, err
}

const mutatedConfig = `
-- Kptfile --
apiVersion: kpt.dev/v1
kind: Kptfile
metadata: {name: p}
pipeline:
  mutators:
  - image: raise
    configPath: ./config.yaml
  - image: raise
    configPath: config.yaml
  - image: raise
    configMap: {level: "x"}
  validators:
  - image: raise
    tag: ">=1"
    configPath: config.yaml
  - image: raise
    configPath: ./config.yaml
-- config.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: config}
data: {level: "1"}
`

// TestConfigurationIsAResource follows a configuration that functions change: the next functions get
// the changed configuration. A function cannot change its own, unless configPath is written in
// another way than the file's name: then it is as it was. kpt does the same.
func TestConfigurationIsAResource(t *testing.T) {
	var levels []string
	e := &evaluator{functions: map[string]framework.ResourceListProcessorFunc{
		"raise": func(list *framework.ResourceList) error {
			level := list.FunctionConfig.GetDataMap()["level"]
			levels = append(levels, level)
			for _, item := range list.Items {
				if item.GetKind() == "ConfigMap" {
					item.SetDataMap(map[string]string{"level": level + "1"})
				}
			}
			return nil
		},
	}}
	if _, err := render(t, mutatedConfig, e, &observer{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"1", "11", "x", "x1", "1"}, levels); diff != "" {
		t.Errorf("levels of three mutators and two validators (-want +got):\n%s", diff)
	}
	if got := e.requests[3].Tag; got != ">=1" {
		t.Errorf("tag of the validator's request = %q", got)
	}
}

// TestConfigMap compares a configuration written in place with the one that kpt makes from it.
func TestConfigMap(t *testing.T) {
	config, err := pipeline.ConfigMap(map[string]string{"b": "true", "a": "8080", "c": "two\nlines\n"})
	if err != nil {
		t.Fatal(err)
	}
	want := `apiVersion: v1
kind: ConfigMap
metadata:
  name: function-input
data:
  a: "8080"
  b: "true"
  c: |
    two
    lines
`
	if diff := cmp.Diff(want, config.MustString()); diff != "" {
		t.Errorf("ConfigMap (-want +got):\n%s", diff)
	}
}

const failing = `
-- Kptfile --
apiVersion: kpt.dev/v1
kind: Kptfile
metadata: {name: outer}
pipeline:
  mutators: [{image: never}]
-- a/Kptfile --
apiVersion: kpt.dev/v1
kind: Kptfile
metadata: {name: a}
pipeline:
  mutators: [{image: ok, selectors: [{kind: Secret}]}]
  validators: [{image: bad}, {image: never}]
-- b/Kptfile --
apiVersion: kpt.dev/v1
kind: Kptfile
metadata: {name: b}
pipeline:
  mutators: [{image: never}]
`

func TestFirstErrorEndsIt(t *testing.T) {
	bad := &pipeline.FunctionError{Message: "bad", Results: []result.Record{{Message: "no owner"}}}
	e := &evaluator{functions: map[string]framework.ResourceListProcessorFunc{
		"ok":  func(*framework.ResourceList) error { return nil },
		"bad": func(*framework.ResourceList) error { return bad },
	}}
	o := &observer{}
	if _, err := render(t, failing, e, o); !errors.Is(err, bad) {
		t.Errorf("Render = %v, want the function's error", err)
	}
	want := []string{"package a", "ok on 0", "bad on 1", "bad failed", "[info] no owner"}
	if diff := cmp.Diff(want, o.lines); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}

const selective = `
-- Kptfile --
apiVersion: kpt.dev/v1
kind: Kptfile
metadata: {name: p}
pipeline:
  mutators:
  - image: split
    exclude: [{kind: Kptfile}]
-- a.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
`

// TestCopiesOfSelectedResourcesStay runs a function that copies a resource together with all
// annotations that identify the original.
func TestCopiesOfSelectedResourcesStay(t *testing.T) {
	e := &evaluator{functions: map[string]framework.ResourceListProcessorFunc{
		"split": func(list *framework.ResourceList) error {
			twin := list.Items[0].Copy()
			list.Items = append(list.Items, twin)
			return errors.Join(
				twin.SetName("twin"),
				twin.PipeE(yaml.SetAnnotation("internal.config.kubernetes.io/index", "1")))
		},
	}}
	resources, err := render(t, selective, e, &observer{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range resources {
		names = append(names, r.GetName())
	}
	if diff := cmp.Diff([]string{"p", "a", "twin"}, names); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
}

func TestUnusableOutput(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(list *framework.ResourceList) error
		want   string
	}{
		"no resource": {"the next function could not work with it", func(list *framework.ResourceList) error {
			list.Items = append(list.Items, yaml.MustParse("kind: Secret"))
			return nil
		}, "has no apiVersion"},
		"two in one place": {"one of them would be lost", func(list *framework.ResourceList) error {
			list.Items = append(list.Items, list.Items[0].Copy())
			return nil
		}, "two resources"},
		"one in two places": {"the last one would win", func(list *framework.ResourceList) error {
			return errors.Join(
				list.Items[0].PipeE(yaml.SetAnnotation("config.kubernetes.io/path", "b.yaml")),
				list.Items[0].PipeE(yaml.SetAnnotation("internal.config.kubernetes.io/path", "c.yaml")))
		}, "mismatched"},
	} {
		t.Run(name, func(t *testing.T) {
			e := &evaluator{functions: map[string]framework.ResourceListProcessorFunc{"split": tc.change}}
			_, err := render(t, selective, e, &observer{})
			if _, ok := errors.AsType[*pipeline.OutputError](err); !ok || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Render = %v, want an OutputError with %q: %s", err, tc.want, tc.reason)
			}
		})
	}
}

func TestPlanRefusesAmbiguousConfiguration(t *testing.T) {
	_, err := plan(t, mutatedConfig+"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: second}\n")
	if err == nil {
		t.Error("NewPlan accepted a configuration file with two documents")
	}
}
