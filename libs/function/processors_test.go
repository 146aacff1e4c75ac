// SPDX-License-Identifier: Apache-2.0

package function_test

import (
	"slices"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/function"
)

func TestWithProcessors(t *testing.T) {
	tests := map[string]struct {
		reason     string
		env        []string
		processors int
		want       []string
	}{
		"not said": {
			"a function shares the machine with others", []string{"HOME=/"}, 1, []string{"HOME=/", "GOMAXPROCS=1"},
		},
		"said": {
			"the image's own setting counts", []string{"GOMAXPROCS=4", "HOME=/"}, 1, []string{"GOMAXPROCS=4", "HOME=/"},
		},
		"a name like that": {
			"it is another variable", []string{"GOMAXPROCS_OLD=4"}, 2, []string{"GOMAXPROCS_OLD=4", "GOMAXPROCS=2"},
		},
		"left to Go": {"it takes all", []string{"HOME=/"}, 0, []string{"HOME=/"}},
		"empty":      {"and stays an environment of its own", []string{}, 0, []string{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(tc.env)
			got := function.WithProcessors(tc.env, tc.processors)
			if !slices.Equal(got, tc.want) || got == nil || !slices.Equal(before, tc.env) {
				t.Errorf("got %q of %q, want %q: %s", got, before, tc.want, tc.reason)
			}
		})
	}
}
