// SPDX-License-Identifier: Apache-2.0

package caller_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/caller"
)

func TestTheContextCarriesTheIdentity(t *testing.T) {
	if got := caller.From(t.Context()); got.Kind != caller.Anonymous || got.ID != "" {
		t.Errorf("a call without identity is made by %+v, want an anonymous caller", got)
	}
	want := caller.Identity{ID: "spiffe://example.com/ns/a/sa/b", Groups: []string{"g"}, Kind: caller.Certificate}
	got := caller.From(caller.With(t.Context(), want))
	if got.ID != want.ID || got.Kind != want.Kind || !slices.Equal(got.Groups, want.Groups) {
		t.Errorf("the call is made by %+v, want %+v", got, want)
	}
}

func TestIdentitiesAreBounded(t *testing.T) {
	tests := map[string]struct {
		identity caller.Identity
		want     bool
		reason   string
	}{
		"anonymous": {caller.Identity{}, true, "nothing is within all bounds"},
		"largest": {caller.Identity{
			ID:     strings.Repeat("a", caller.MaxIDBytes),
			Groups: slices.Repeat([]string{strings.Repeat("g", caller.MaxGroupBytes)}, caller.MaxGroups),
		}, true, "the bounds are inclusive"},
		"long ID":     {caller.Identity{ID: strings.Repeat("a", caller.MaxIDBytes+1)}, false, "logs have it"},
		"many groups": {caller.Identity{Groups: make([]string, caller.MaxGroups+1)}, false, "conditions go through them"},
		"long group": {
			caller.Identity{Groups: []string{"", strings.Repeat("g", caller.MaxGroupBytes+1)}},
			false, "any group counts",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.identity.Bounded(); got != tc.want {
				t.Errorf("Bounded() = %t, want %t: %s", got, tc.want, tc.reason)
			}
		})
	}
}
