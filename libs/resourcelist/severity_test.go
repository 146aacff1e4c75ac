// SPDX-License-Identifier: Apache-2.0

package resourcelist_test

import (
	"testing"

	"github.com/krm-function-runner/function-runner/libs/resourcelist"
)

func TestWorst(t *testing.T) {
	tests := map[string]struct {
		severities []string
		want       string
	}{
		"none":       {nil, "none"},
		"default":    {[]string{""}, "info"},
		"mixed":      {[]string{"info", "error", "warning"}, "error"},
		"warning":    {[]string{"warning", ""}, "warning"},
		"unheard of": {[]string{"catastrophe"}, "info"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var results []resourcelist.Result
			for _, s := range tc.severities {
				results = append(results, resourcelist.Result{Severity: s})
			}
			if got := resourcelist.Worst(results); got != tc.want {
				t.Errorf("Worst(%q) = %q, want %q", tc.severities, got, tc.want)
			}
		})
	}
}
