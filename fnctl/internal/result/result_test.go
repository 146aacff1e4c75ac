// SPDX-License-Identifier: Apache-2.0

package result_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/result"
	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
)

func TestFromYAML(t *testing.T) {
	want := []string{"[error] v1/Service/shop/web spec.ports (a.yaml): bad", "[info] fine"}
	for name, tc := range map[string]struct{ reason, data string }{
		"present form": {"what the specification says", `
- message: bad
  severity: error
  resourceRef: {apiVersion: v1, kind: Service, name: web, namespace: shop}
  field: {path: spec.ports, currentValue: [1], proposedValue: {a: b}}
  file: {path: a.yaml, index: 1}
  tags: {rule: x}
- message: fine
`},
		"older form": {"functions made with old SDKs are still around", `
name: check
items:
- message: bad
  severity: Error
  resourceRef: {apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}}
  field: {path: spec.ports, suggestedValue: 1}
  file: {path: a.yaml}
- message: fine
  severity: info
`},
	} {
		t.Run(name, func(t *testing.T) {
			records, err := result.FromYAML(yaml.MustParse(tc.data))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range records {
				got = append(got, r.String())
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("FromYAML (-want +got), %s:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFromYAMLWithoutResults(t *testing.T) {
	for _, node := range []*yaml.RNode{nil, yaml.MustParse("[]"), yaml.MustParse("{}"), yaml.MustParse("name: check")} {
		if got, err := result.FromYAML(node); len(got) > 0 || err != nil {
			t.Errorf("FromYAML = %v, %v, want nothing", got, err)
		}
	}
	if _, err := result.FromYAML(yaml.MustParse("[1, 2]")); err == nil {
		t.Error("FromYAML accepted numbers as results")
	}
}

func TestFromFailure(t *testing.T) {
	got := result.FromFailure(&functionrunnerv1.FunctionFailure{Results: []*functionrunnerv1.Result{{
		Message: "bad", Severity: "warning",
		ResourceRef: &functionrunnerv1.Result_ResourceRef{Kind: "Service", Name: "web"},
		Field:       &functionrunnerv1.Result_Field{Path: "spec"},
		File:        &functionrunnerv1.Result_File{Path: "a.yaml"},
	}}})
	want := []result.Record{{
		Severity: "warning", Message: "bad", ResourceRef: &result.Reference{Kind: "Service", Name: "web"},
		Field: &result.Field{Path: "spec"}, File: &result.File{Path: "a.yaml"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("FromFailure (-want +got):\n%s", diff)
	}
	if got, want := got[0].String(), "[warning] Service/web spec (a.yaml): bad"; got != want {
		t.Errorf("String = %q, want %q", got, want)
	}
	if got, want := (result.Record{Severity: "Info", Message: "hi\n"}).String(), "[info] hi"; got != want {
		t.Errorf("String = %q, want %q", got, want)
	}
}

// TestRecords compares both sources of records: what a list says, and what the gateway says of it.
func TestRecords(t *testing.T) {
	want := []result.Record{{
		Message: "bad", Severity: "error",
		ResourceRef: &result.Reference{APIVersion: "v1", Kind: "Service", Name: "web", Namespace: "shop"},
		Field:       &result.Field{Path: "spec.ports", CurrentValue: "- 1\n- x", ProposedValue: "8080"},
		File:        &result.File{Path: "a.yaml", Index: 1},
		Tags:        map[string]string{"rule": "x"},
	}}
	got, err := result.FromYAML(yaml.MustParse(`
- message: bad
  severity: error
  resourceRef: {apiVersion: v1, kind: Service, name: web, namespace: shop}
  field: {path: spec.ports, currentValue: [1, x], proposedValue: 8080}
  file: {path: a.yaml, index: 1}
  tags: {rule: x}
`))
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("FromYAML: %v (-want +got):\n%s", err, diff)
	}
	got = result.FromFailure(&functionrunnerv1.FunctionFailure{Results: []*functionrunnerv1.Result{{
		Message: "bad", Severity: "error",
		ResourceRef: &functionrunnerv1.Result_ResourceRef{ApiVersion: "v1", Kind: "Service", Name: "web", Namespace: "shop"},
		Field:       &functionrunnerv1.Result_Field{Path: "spec.ports", CurrentValue: `[1,"x"]`, ProposedValue: "8080"},
		File:        &functionrunnerv1.Result_File{Path: "a.yaml", Index: 1},
		Tags:        map[string]string{"rule": "x"},
	}}})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("FromFailure (-want +got):\n%s", diff)
	}
}
