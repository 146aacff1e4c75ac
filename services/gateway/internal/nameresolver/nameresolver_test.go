// SPDX-License-Identifier: Apache-2.0

package nameresolver_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/nameresolver"
)

// tags is a source that knows some repositories.
type tags map[string][]string

func (s tags) Tags(_ context.Context, repository string) ([]string, bool, error) {
	switch repository {
	case "example.com/down":
		return nil, false, errors.New("registry down")
	case "example.com/missing":
		return nil, false, fault.New(fault.NotFound, "404 NAME_UNKNOWN")
	}
	list, known := s[repository]
	return list, known, nil
}

func TestResolve(t *testing.T) {
	resolver := nameresolver.Resolver{
		DefaultPrefix: "example.com/catalog",
		Tags: []nameresolver.TagSource{
			tags{"example.com/catalog/fn": {"v0.4.1", "v0.4.5", "v0.5.0"}},
			tags{"example.com/catalog/fn": {"v0.4.9"}, "example.com/other": {"v1.0.0"}, "example.com/bare": nil},
		},
	}
	tests := map[string]struct {
		reason     string
		image, tag string
		want       string
		err        string
	}{
		"no tag": {
			reason: "an empty tag changes nothing",
			image:  "fn:v0.1", want: "example.com/catalog/fn:v0.1",
		},
		"exact": {
			reason: "an exact tag is taken without a list",
			image:  "example.com/unknown:v1", tag: "v2.0.0", want: "example.com/unknown:v2.0.0",
		},
		"literal": {
			reason: "so is what is no version at all",
			image:  "fn", tag: "canary", want: "example.com/catalog/fn:canary",
		},
		"constraint": {
			reason: "the first source with a tag that fits decides",
			image:  "fn:v0.1", tag: "~0.4.0", want: "example.com/catalog/fn:v0.4.5",
		},
		"second source": {
			reason: "a source that knows nothing is passed over",
			image:  "example.com/other", tag: ">=1", want: "example.com/other:v1.0.0",
		},
		"second fits": {
			reason: "so is one that has nothing that fits",
			image:  "fn", tag: "0.4.9 - 0.4.x", want: "example.com/catalog/fn:v0.4.9",
		},
		"no match": {
			reason: "the error says what there is",
			image:  "fn", tag: ">=2", err: "there is v0.4.1, v0.4.5, v0.5.0, v0.4.9",
		},
		"no tags": {
			reason: "not NotFound, after which Porch tries its next runtime",
			image:  "example.com/bare", tag: ">=1", err: "the repository has no tags",
		},
		"malformed tag": {
			reason: "neither tag nor constraint",
			image:  "fn", tag: "a b", err: `tag "a b"`,
		},
		"no image": {
			reason: "an image is needed",
			tag:    "v1", err: "no image given",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := resolver.Resolve(t.Context(), tc.image, tc.tag)
			if tc.err != "" {
				if fault.Of(err) != fault.Invalid || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("Resolve = %v, %v, want an invalid request that says %q: %s", got, err, tc.err, tc.reason)
				}
				return
			}
			if err != nil || got.String() != tc.want {
				t.Errorf("Resolve = %v, %v, want %s: %s", got, err, tc.want, tc.reason)
			}
		})
	}
	if _, err := resolver.Resolve(t.Context(), "example.com/down", ">=1"); err == nil || fault.Of(err) == fault.Invalid {
		t.Errorf("Resolve = %v, want the source's own error", err)
	}
	_, err := resolver.Resolve(t.Context(), "example.com/missing", ">=1")
	if fault.Of(err) != fault.Precondition || !strings.Contains(err.Error(), "404") {
		t.Errorf("Resolve = %v, want no NotFound: an evaluator serves the registry's images", err)
	}
	if _, err := resolver.Resolve(t.Context(), "example.com/unknown", ">=1"); fault.Of(err) != fault.NotFound {
		t.Errorf("Resolve = %v, want NotFound: Porch asks the next runtime then", err)
	}
}
