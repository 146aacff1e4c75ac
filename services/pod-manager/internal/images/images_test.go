// SPDX-License-Identifier: Apache-2.0

package images_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/krm-function-runner/function-runner/libs/fault"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/images"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// resolver answers with what it was asked, and does not know an image without name.
type resolver struct{ asked int }

func (r *resolver) ResolveImage(_ context.Context, req *imageresolverv1.ResolveImageRequest) (
	*imageresolverv1.ResolveImageResponse, error,
) {
	r.asked++
	if req.GetImage() == "" {
		return nil, fault.New(fault.NotFound, "no such image")
	}
	return &imageresolverv1.ResolveImageResponse{Reference: req.GetImage() + req.GetTagConstraint()}, nil
}

func TestCache(t *testing.T) {
	r := new(resolver)
	cached := images.New(r, nil)
	tests := []struct {
		reason            string
		image, constraint string
		asked             int
		class             fault.Class
	}{
		{reason: "nothing is known", image: "fn", asked: 1},
		{reason: "that is known", image: "fn", asked: 1},
		{reason: "the same image is another one with a constraint", image: "fn", constraint: "~1.2", asked: 2},
		{reason: "that is known too", image: "fn", constraint: "~1.2", asked: 2},
		{reason: "errors keep their class", asked: 3, class: fault.NotFound},
		{reason: "and are not remembered", asked: 4, class: fault.NotFound},
	}
	for _, tc := range tests {
		req := &imageresolverv1.ResolveImageRequest{Image: tc.image, TagConstraint: tc.constraint}
		got, err := cached.ResolveImage(t.Context(), req)
		if r.asked != tc.asked {
			t.Errorf("%d questions, want %d: %s", r.asked, tc.asked, tc.reason)
		}
		if tc.class != fault.Internal {
			if err == nil || fault.Of(err) != tc.class {
				t.Errorf("error %v, want class %v: %s", err, tc.class, tc.reason)
			}
			continue
		}
		if err != nil || got.GetReference() != tc.image+tc.constraint {
			t.Errorf("%v, %v, want %s%s: %s", got, err, tc.image, tc.constraint, tc.reason)
		}
		if known, ok := cached.Cached(req); !ok || known != got {
			t.Errorf("Cached = %v, %t, want the same: %s", known, ok, tc.reason)
		}
	}
}
