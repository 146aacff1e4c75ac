// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
)

// family returns packages beside and inside one another, of which some fail.
func family(failing ...string) []byte {
	var b strings.Builder
	for _, dir := range []string{".", "a", "a/x", "a/y", "b", "c", "c/x", "d", "e"} {
		image := "ok"
		for _, f := range failing {
			if f == dir {
				image = "fail"
			}
		}
		fmt.Fprintf(&b, "-- %s/Kptfile --\napiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: p}\n"+
			"pipeline: {mutators: [{image: ok}, {image: %s}], validators: [{image: ok}]}\n"+
			"-- %s/cm.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n",
			dir, image, dir, strings.ReplaceAll(dir+"-cm", "/", "-"))
	}
	return []byte(b.String())
}

// renderFamily renders a family with so many jobs, and returns all that a user sees of it.
func renderFamily(t *testing.T, archive []byte, jobs int, evaluate pipeline.Evaluator) string {
	t.Helper()
	dir := t.TempDir()
	if err := txtar.Write(txtar.Parse(archive), dir); err != nil {
		t.Fatal(err)
	}
	tree, err := pkgtree.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := pipeline.NewPlan(tree.Root, pipeline.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := &observer{}
	rendering, err := (&pipeline.Renderer{Evaluator: evaluate, Observer: o, Jobs: jobs, Files: tree.Files}).
		Render(t.Context(), plan)
	seen := []string{strings.Join(o.lines, "\n"), fmt.Sprint(err)}
	for _, step := range rendering.Steps() {
		seen = append(seen, fmt.Sprint(step.Call.Package.Path, step.Call.Function.Image, step.Outcome.Err))
		for _, change := range step.Changes {
			seen = append(seen, string(change.After))
		}
	}
	for _, r := range rendering.Resources {
		text, err := r.String()
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, text)
	}
	return strings.Join(seen, "\n")
}

// counting is an evaluator whose functions count how often a resource was seen. It blocks each evaluation until as many
// run as must run concurrently.
type counting struct {
	mu      sync.Mutex
	running int
	most    int
	enough  chan struct{}
	want    int
}

func (c *counting) Evaluate(ctx context.Context, req pipeline.Request) (pipeline.Response, error) {
	c.mu.Lock()
	c.running++
	c.most = max(c.most, c.running)
	if c.running == c.want {
		close(c.enough)
		c.want = 0
	}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.running--
		c.mu.Unlock()
	}()
	select {
	case <-c.enough:
	case <-ctx.Done():
		return pipeline.Response{}, ctx.Err()
	}
	req.Waiting("for nothing")
	if req.Image == "fail" {
		return pipeline.Response{}, errors.New("function failed")
	}
	list, err := yaml.Parse(string(req.ResourceList))
	if err != nil {
		return pipeline.Response{}, err
	}
	items, err := list.Field("items").Value.Elements()
	if err != nil {
		return pipeline.Response{}, err
	}
	for _, item := range items {
		if err := item.PipeE(yaml.SetLabel("seen", item.GetLabels()["seen"]+"x")); err != nil {
			return pipeline.Response{}, err
		}
	}
	text, err := list.String()
	return pipeline.Response{ResourceList: []byte(text)}, err
}

func newCounting(want int) *counting {
	c := &counting{enough: make(chan struct{}), want: want}
	if want == 0 {
		close(c.enough)
	}
	return c
}

// TestJobsDoNotShow renders packages concurrently: steps, events, resources and errors are those of a serial rendering.
func TestJobsDoNotShow(t *testing.T) {
	for _, failing := range [][]string{nil, {"b"}, {"c/x", "d"}, {"a/x"}, {"a/y", "b", "e"}, {"a", "."}, {"."}} {
		archive := family(failing...)
		serial := newCounting(0)
		want := renderFamily(t, archive, 1, serial)
		if serial.most != 1 {
			t.Errorf("%d functions ran concurrently with one job", serial.most)
		}
		for range 3 {
			if diff := cmp.Diff(want, renderFamily(t, archive, 4, newCounting(0))); diff != "" {
				t.Fatalf("failing %q: concurrently (-serially):\n%s", failing, diff)
			}
		}
	}
}

// TestJobsRunConcurrently has functions wait until four of them run.
func TestJobsRunConcurrently(t *testing.T) {
	c := newCounting(4)
	renderFamily(t, family(), 4, c)
	if c.most != 4 {
		t.Errorf("%d functions ran concurrently, want 4", c.most)
	}
}
