// SPDX-License-Identifier: Apache-2.0

package resourcelist_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/krm-function-runner/function-runner/libs/resourcelist"
)

// withResults are lists with what their results are.
var withResults = []struct {
	reason, document string
	want             []resourcelist.Result
}{
	{
		"everything that a result may have",
		head + items + `results:
- message: selector is missing
  severity: error
  resourceRef:
    apiVersion: apps/v1
    kind: Deployment
    name: web
    namespace: shop
  field:
    path: spec.selector
    currentValue: {}
    proposedValue:
      matchLabels:
        app: <web>
  file:
    path: web/deployment.yaml
    index: 2
  tags:
    rule: "1"
`,
		[]resourcelist.Result{{
			Message: "selector is missing", Severity: "error",
			ResourceRef: &resourcelist.ResourceRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"},
			Field: &resourcelist.Field{
				Path: "spec.selector", CurrentValue: "{}", ProposedValue: `{"matchLabels":{"app":"<web>"}}`,
			},
			File: &resourcelist.File{Path: "web/deployment.yaml", Index: 2},
			Tags: map[string]string{"rule": "1"},
		}},
	},
	{
		"results before the items",
		"results:\n- message: a\n- message: b\n" + head + items,
		[]resourcelist.Result{{Message: "a"}, {Message: "b"}},
	},
	{
		"indented results after a comment",
		head + items + "# found:\nresults: # two\n  # first\n  - message: a\n    severity: warning\n  - message: b\n",
		[]resourcelist.Result{{Message: "a", Severity: "warning"}, {Message: "b"}},
	},
	{
		"messages over lines, with all their line breaks",
		head + "results:\n- message: |\n    a: b\n\n    c\n- message: >-\n    d\n    e\n" +
			"- message: \"f\\ng\"\n- message: |+\n    h\n\n\n" + items,
		[]resourcelist.Result{{Message: "a: b\n\nc\n"}, {Message: "d e"}, {Message: "f\ng"}, {Message: "h\n\n\n"}},
	},
	{
		"Windows line ends are line breaks as all are",
		strings.ReplaceAll(head+items+"results:\n- message: |-\n    a\n    b\n", "\n", "\r\n"),
		[]resourcelist.Result{{Message: "a\nb"}},
	},
	{
		"old functions wrap the results",
		head + "results:\n  name: validate\n  items:\n  - message: a\n    severity: info\n",
		[]resourcelist.Result{{Message: "a", Severity: "info"}},
	},
	{
		"old SDKs write names and proposed values in other fields",
		head + "results:\n- resourceRef: {apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}}\n" +
			"  field: {path: spec.port, currentValue: 80, suggestedValue: 8080}\n",
		[]resourcelist.Result{{
			ResourceRef: &resourcelist.ResourceRef{APIVersion: "v1", Kind: "Service", Namespace: "shop", Name: "web"},
			Field:       &resourcelist.Field{Path: "spec.port", CurrentValue: "80", ProposedValue: "8080"},
		}},
	},
	{"kpt reads results that are tagged as null as none", head + "results: !!null text\n", nil},
	{"old results without items are none", head + "results:\n  name: validate\n", nil},
	{"no results in a sequence are none", head + "results: []\n", nil},
	{
		"JSON",
		`{"kind":"ResourceList","items":[],` +
			`"results":[{"message":"a","field":{"path":"p","currentValue":1.5,"proposedValue":[true,"x"]}}]}`,
		[]resourcelist.Result{{
			Message: "a", Field: &resourcelist.Field{Path: "p", CurrentValue: "1.5", ProposedValue: `[true,"x"]`},
		}},
	},
	{
		"aliases in results",
		head + "results:\n- message: &m a\n  tags: &t\n    b: *m\n- message: *m\n  tags: *t\n",
		[]resourcelist.Result{
			{Message: "a", Tags: map[string]string{"b": "a"}},
			{Message: "a", Tags: map[string]string{"b": "a"}},
		},
	},
	{
		"unknown fields are for others",
		head + "results:\n- message: a\n  extra: {b: c}\n",
		[]resourcelist.Result{{Message: "a"}},
	},
	{
		"scalars that are no strings are text where text is wanted",
		head + "results:\n- message: 404\n  severity: null\n  tags:\n    a: true\n    b: 1.10\n",
		[]resourcelist.Result{{Message: "404", Tags: map[string]string{"a": "true", "b": "1.10"}}},
	},
	{
		"values that JSON does not know",
		head + "results:\n- field:\n    path: a\n    currentValue: .inf\n    proposedValue:\n      1: 2020-01-02\n" +
			"- field:\n    path: b\n    currentValue: null\n",
		[]resourcelist.Result{
			{Field: &resourcelist.Field{Path: "a", CurrentValue: `"+Inf"`, ProposedValue: `{"1":"2020-01-02T00:00:00Z"}`}},
			{Field: &resourcelist.Field{Path: "b"}},
		},
	},
}

func TestParseResults(t *testing.T) {
	for _, tc := range withResults {
		t.Run(tc.reason, func(t *testing.T) {
			got, err := resourcelist.Parse(t.Context(), []byte(tc.document))
			if err != nil {
				t.Fatalf("Parse(%q): %v", tc.document, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Parse(%q): results (-want +got):\n%s", tc.document, diff)
			}
		})
	}
}

func TestResultString(t *testing.T) {
	ref := &resourcelist.ResourceRef{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "p"}
	tests := map[string]struct {
		reason string
		result resourcelist.Result
		want   string
	}{
		"all": {
			"all parts in their order",
			resourcelist.Result{Message: "m", Severity: "error", ResourceRef: ref, Field: &resourcelist.Field{Path: "a.b"}},
			"[error] v1/Pod/ns/p a.b: m",
		},
		"message": {"an empty severity reads info", resourcelist.Result{Message: "m"}, "[info]: m"},
		"cluster": {
			"an empty namespace takes its separator along",
			resourcelist.Result{
				Message: "m", Severity: "warning",
				ResourceRef: &resourcelist.ResourceRef{APIVersion: "v1", Kind: "Node", Name: "n"},
			},
			"[warning] v1/Node/n: m",
		},
		"empty parts": {
			"references that say nothing leave no gap",
			resourcelist.Result{
				Message: "m", ResourceRef: &resourcelist.ResourceRef{},
				Field: &resourcelist.Field{}, File: &resourcelist.File{Path: "f"},
			},
			"[info]: m",
		},
		"field": {
			"a field without a resource",
			resourcelist.Result{Message: "m", Field: &resourcelist.Field{Path: "a"}},
			"[info] a: m",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.result.String(); got != tc.want {
				t.Errorf("String() = %q, want %q: %s", got, tc.want, tc.reason)
			}
		})
	}
}

func TestFormatResults(t *testing.T) {
	if got := resourcelist.FormatResults(nil); got != "" {
		t.Errorf("FormatResults(nil) = %q, want nothing", got)
	}
	got := resourcelist.FormatResults([]resourcelist.Result{{Message: "a"}, {Message: "b", Severity: "error"}})
	if want := "[info]: a\n\n[error]: b"; got != want {
		t.Errorf("FormatResults = %q, want %q", got, want)
	}
}
