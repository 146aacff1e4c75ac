// SPDX-License-Identifier: Apache-2.0

package function_test

import (
	"slices"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/function"
)

func TestWithGo(t *testing.T) {
	tests := map[string]struct {
		reason string
		env    []string
		memory int64
		want   []string
	}{
		"not set": {
			"a function shares the machine with others",
			[]string{"HOME=/"},
			1000,
			[]string{"HOME=/", "GOMAXPROCS=1", "GOGC=200", "GOMEMLIMIT=500"},
		},
		"set": {
			"the image's own settings count",
			[]string{"GOMAXPROCS=4", "GOMEMLIMIT=7", "GOGC=off"},
			1000,
			[]string{"GOMAXPROCS=4", "GOMEMLIMIT=7", "GOGC=off"},
		},
		"names like those": {
			"they are other variables",
			[]string{"GOMAXPROCS_OLD=4", "GOGCC=1"},
			0,
			[]string{"GOMAXPROCS_OLD=4", "GOGCC=1", "GOMAXPROCS=1", "GOGC=200"},
		},
		"empty": {"and stays an environment of its own", []string{}, 0, []string{"GOMAXPROCS=1", "GOGC=200"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(tc.env)
			got := function.WithGo(tc.env, tc.memory)
			if !slices.Equal(got, tc.want) || got == nil || !slices.Equal(before, tc.env) {
				t.Errorf("got %q of %q, want %q: %s", got, before, tc.want, tc.reason)
			}
		})
	}
}
