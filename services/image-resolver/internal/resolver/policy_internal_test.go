// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"testing"
	"testing/synctest"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/policy"
)

// TestPolicyIsAskedForTagLists also has a list in the cache from before.
func TestPolicyIsAskedForTagLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &tagged{tags: `"v1.0.0"`}
		r := newResolver(t, s, forAnswers, nil)
		if tags, err := r.Tags(t.Context(), "registry.example/fn", ""); err != nil || len(tags) != 1 {
			t.Fatalf("listed %v, %v", tags, err)
		}
		deny, err := policy.ParseRules([]string{"registry.example/**"})
		if err != nil {
			t.Fatal(err)
		}
		r.cfg.Policy.Deny = deny
		for _, repository := range []string{"registry.example/fn", "registry.example/other"} {
			if tags, err := r.Tags(t.Context(), repository, ""); fault.Of(err) != fault.Denied {
				t.Errorf("%s: listed %v, %v, want class denied", repository, tags, err)
			}
		}
		if s.lists != 1 {
			t.Errorf("the registry was asked %d times, and denied before the second", s.lists)
		}
	})
}
