// SPDX-License-Identifier: Apache-2.0

package resolverclient_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/resolverclient"
)

// resolver answers with what it was asked, unless it is away.
type resolver struct {
	asked int
	err   error
}

func (r *resolver) ResolveImage(_ context.Context, req *resolverclient.Request) (*resolverclient.Image, error) {
	r.asked++
	return &resolverclient.Image{
		Reference: req.GetImage() + req.GetTagConstraint(), Digest: strconv.Itoa(r.asked),
	}, r.err
}

// TestTagsAreResolvedEachTime, unless the image-resolver is away; digests are resolved once.
func TestTagsAreResolvedEachTime(t *testing.T) {
	var r resolver
	stale := 0
	last := resolverclient.New(&r, func(context.Context) { stale++ })
	resolve := func(req *resolverclient.Request, digest string) {
		t.Helper()
		got, err := last.ResolveImage(t.Context(), req)
		if err != nil || got.GetReference() != req.GetImage()+req.GetTagConstraint() || got.GetDigest() != digest {
			t.Errorf("got %v, %v for %v, want the digest %s", got, err, req, digest)
		}
	}
	resolve(&resolverclient.Request{Image: "fn:v1"}, "1")
	resolve(&resolverclient.Request{Image: "fn:v1"}, "2")
	resolve(&resolverclient.Request{Image: "fn:v1", TagConstraint: "~1"}, "3")
	resolve(&resolverclient.Request{Image: "fn@sha256:1"}, "4")
	resolve(&resolverclient.Request{Image: "fn@sha256:1"}, "4")
	r.err = fault.New(fault.Unavailable, "away")
	resolve(&resolverclient.Request{Image: "fn:v1"}, "2")
	if stale != 1 {
		t.Errorf("%d stale answers were counted, want 1", stale)
	}
}
