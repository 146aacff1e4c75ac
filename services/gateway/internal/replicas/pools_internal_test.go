// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"maps"
	"slices"
	"testing"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

// TestViews lists what replicas a and b see, as "fn@replica" for each pool.
func TestViews(t *testing.T) {
	list := func(replica string, functions ...string) (pools []*podmanagerv1.Pool) {
		for _, f := range functions {
			pools = append(pools, &podmanagerv1.Pool{Key: &podmanagerv1.PoolKey{Reference: f}, Replica: replica})
		}
		return pools
	}
	both := []string{"a", "b"}
	tests := map[string]struct {
		reason string
		views  views
		there  []string // replicas
		want   []string
	}{
		"one replica": {
			"it is passed on, in order",
			views{"a": list("a", "y", "x")},
			[]string{"a"},
			[]string{"x@a", "y@a"},
		},
		"two replicas": {
			"each function is there once",
			views{"a": list("a", "x"), "b": list("b", "y")},
			both,
			[]string{"x@a", "y@b"},
		},
		"both see it": {
			"of which the owner tells, who names itself",
			views{"a": append(list("a", "x"), list("", "y")...), "b": append(list("", "x"), list("b", "y")...)},
			both,
			[]string{"x@a", "y@b"},
		},
		"lost": {
			"what it listed last stays",
			views{"a": list("a", "x"), "b": nil},
			both,
			[]string{"x@a"},
		},
		"gone": {
			"its pools go with it",
			views{"a": list("a", "x"), "b": list("b", "y")},
			[]string{"b"},
			[]string{"y@b"},
		},
		"moved": {
			"the new owner's pool is left",
			views{"a": list("a", "x"), "b": list("b", "x")},
			[]string{"b"},
			[]string{"x@b"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			maps.DeleteFunc(tc.views, func(a string, _ []*podmanagerv1.Pool) bool { return !slices.Contains(tc.there, a) })
			var got []string
			for _, p := range tc.views.merge() {
				got = append(got, p.GetKey().GetReference()+"@"+p.GetReplica())
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("pools %v, want %v: %s", got, tc.want, tc.reason)
			}
		})
	}
}
