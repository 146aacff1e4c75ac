// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
)

// TestResultsKeepTheirTypes encodes results with numbers, a string of digits and an object.
func TestResultsKeepTheirTypes(t *testing.T) {
	got := encodeResults([]*functionrunnerv1.Result{
		{
			Message: "bad", Severity: "error", Tags: map[string]string{"rule": "x"},
			ResourceRef: &functionrunnerv1.Result_ResourceRef{ApiVersion: "v1", Kind: "Service", Name: "web"},
			Field:       &functionrunnerv1.Result_Field{Path: "spec.port", CurrentValue: "8080", ProposedValue: `"8080"`},
			File:        &functionrunnerv1.Result_File{Path: "a.yaml", Index: 1},
		},
		{Field: &functionrunnerv1.Result_Field{ProposedValue: `{"a":[true]}`}},
		{Field: &functionrunnerv1.Result_Field{CurrentValue: "1000650000", ProposedValue: "9007199254740993"}},
	})
	const want = `apiVersion: config.kubernetes.io/v1
items: []
kind: ResourceList
results:
- field:
    currentValue: 8080
    path: spec.port
    proposedValue: "8080"
  file:
    index: 1
    path: a.yaml
  message: bad
  resourceRef:
    apiVersion: v1
    kind: Service
    name: web
  severity: error
  tags:
    rule: x
- field:
    proposedValue:
      a:
      - true
- field:
    currentValue: 1000650000
    proposedValue: 9007199254740993
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
