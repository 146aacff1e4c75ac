// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

func TestCachedDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &tagged{tags: `"v1.0.0"`}
		r := newResolver(t, s, forAnswers, nil)
		for _, constraint := range []string{"", "v1.0.0", "^1"} {
			req := Request{Image: "registry.example/fn:v1.0.0", Constraint: constraint}
			if constraint == "^1" {
				if _, ok := r.Cached(t.Context(), req); ok || s.lists != 0 {
					t.Errorf("Cached knows tags that no registry has listed, after %d lists", s.lists)
				}
			}
			want, err := r.Resolve(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if got, ok := r.Cached(t.Context(), req); !ok || got != want {
				t.Errorf("constraint %q: Cached = %+v, %t, want %+v as resolved", constraint, got, ok, want)
			}
		}
		s.become("", http.StatusServiceUnavailable)
		if _, ok := r.Cached(t.Context(), Request{Image: "registry.example/other:v1"}); ok {
			t.Error("Cached knows an image that was not resolved")
		}
	})
}

// TestTagsInUseDoNotExpire asks once for the tags of a repository, and for one of them: they are refreshed before their
// hour is over.
func TestTagsInUseDoNotExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newResolver(t, &tagged{tags: `"v1.0.0"`}, forAnswers, nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = r.Run(ctx) }() // it returns nil
		req := Request{Image: "registry.example/fn:v1.0.0", Constraint: "^1"}
		if _, err := r.Resolve(ctx, req); err != nil {
			t.Fatal(err)
		}
		<-time.After(90 * time.Minute)
		if _, ok := r.Cached(ctx, req); !ok {
			t.Error("after 90 minutes, a caller waits for the registry")
		}
		<-time.After(2 * time.Hour)
		if _, ok := r.Cached(ctx, req); ok {
			t.Error("a tag that is not in use is kept for hours")
		}
	})
}
