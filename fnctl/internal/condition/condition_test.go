// SPDX-License-Identifier: Apache-2.0

package condition_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/condition"
)

var resources = []*yaml.RNode{
	yaml.MustParse("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {env: prod}\n"),
	yaml.MustParse("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 3}\n"),
}

func TestHolds(t *testing.T) {
	for expression, want := range map[string]bool{
		"":      true,
		"true":  true,
		"false": false,
		"resources.exists(r, r.kind == 'ConfigMap' && r.metadata.name == 'a')": true,
		"resources.filter(r, r.kind == 'Deployment').size() > 1":               false,
		"resources.exists(r, r.?data.env.orValue('') == 'prod')":               true,
		"resources.exists(r, r.kind == 'Deployment' && r.spec.replicas > 2.5)": true,
		"resources.map(r, r.metadata.name).sort() == ['a', 'web']":             true,
		"'a-b'.split('-').size() == 2":                                         true,
	} {
		c, err := condition.Compile(expression)
		if err != nil {
			t.Errorf("Compile(%q) = %v", expression, err)
			continue
		}
		if got, err := c.Holds(t.Context(), resources); err != nil || got != want {
			t.Errorf("%q holds: %t, %v, want %t", expression, got, err, want)
		}
	}
}

func TestCompileRejects(t *testing.T) {
	for expression, want := range map[string]string{
		"resources.exists(":   "is not a CEL expression",
		"resource.size() > 0": "undeclared reference",
		"resources.size()":    "must be true or false, but is of type int",
		"resources[0].kind":   "must be true or false, but is of type dyn",
	} {
		if _, err := condition.Compile(expression); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Compile(%q) = %v, want %q", expression, err, want)
		}
	}
}

// TestBounds evaluates an expression that would run for hours.
func TestBounds(t *testing.T) {
	many := strings.Repeat("resources.all(x, ", 1) + "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, " +
		"[1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, " +
		"[1,2,3,4,5,6,7,8,9,10].all(f, a+b+c+d+e+f > 0)))))))"
	c, err := condition.Compile(many)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Holds(t.Context(), resources); err == nil || !strings.Contains(err.Error(), "cost limit") {
		t.Errorf("Holds = %v, want the cost limit", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Holds(ended, resources); err == nil || errors.Is(err, nil) {
		t.Error("Holds went on after its context had ended")
	}
}

func TestMissingField(t *testing.T) {
	c, err := condition.Compile("resources.all(r, r.data.env == 'prod')")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Holds(t.Context(), resources[1:]); err == nil || !strings.Contains(err.Error(), "no such key: data") {
		t.Errorf("Holds = %v, want the missing key", err)
	}
}
