// SPDX-License-Identifier: Apache-2.0

package resolverclient_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	"go.uber.org/goleak"

	"github.com/krm-function-runner/function-runner/libs/fault"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1/imageresolverv1connect"
	"github.com/krm-function-runner/function-runner/libs/resolverclient"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
	"github.com/krm-function-runner/function-runner/libs/testing/scrapetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// resolver is an image-resolver that knows one repository.
type resolver struct {
	imageresolverv1connect.UnimplementedImageResolverServiceHandler
	tags  []string
	err   error // the answer, if there is one
	asked atomic.Int32
}

const repository = "example.com/fn"

func (r *resolver) ListTags(
	_ context.Context, req *imageresolverv1.ListTagsRequest,
) (*imageresolverv1.ListTagsResponse, error) {
	r.asked.Add(1)
	if r.err == nil && req.GetRepository() != repository {
		return nil, rpcfault.ToConnect(fault.New(fault.NotFound, "NAME_UNKNOWN"))
	}
	return &imageresolverv1.ListTagsResponse{Tags: r.tags}, rpcfault.ToConnect(r.err)
}

func (r *resolver) ResolveImage(
	_ context.Context, req *imageresolverv1.ResolveImageRequest,
) (*imageresolverv1.ResolveImageResponse, error) {
	r.asked.Add(1)
	return &imageresolverv1.ResolveImageResponse{
		Reference: req.GetImage() + req.GetTagConstraint(), Digest: "sha256:1",
	}, rpcfault.ToConnect(r.err)
}

// hangs is for an image-resolver that answers.
func hangs(context.Context) bool { return false }

func remote(t *testing.T, r *resolver) *resolverclient.Client {
	t.Helper()
	return resolverclient.New(r, hangs, noop.NewMeterProvider())
}

func TestTags(t *testing.T) {
	away := fault.New(fault.Unavailable, "connection refused")
	refused := fault.New(fault.Precondition, "401 Unauthorized")
	tests := map[string]struct {
		reason     string
		repository string
		err        error // of the resolver
		want       error
	}{
		"known": {reason: "the registry's tags", repository: repository},
		"unknown": {
			reason:     "classes cross the wire",
			repository: "example.com/other", want: fault.New(fault.NotFound, "NAME_UNKNOWN"),
		},
		"away":    {reason: "nothing is made up", repository: repository, err: away, want: away},
		"refused": {reason: "the registry's words", repository: repository, err: refused, want: refused},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := &resolver{tags: []string{"v1.0.0", "v1.1.0"}, err: tc.err}
			resp, err := remote(t, r).ListTags(t.Context(), &imageresolverv1.ListTagsRequest{Repository: tc.repository})
			if tc.want != nil {
				if err == nil || fault.Of(err) != fault.Of(tc.want) || err.Error() != tc.want.Error() {
					t.Errorf("ListTags = %v, %v, want %v: %s", resp, err, tc.want, tc.reason)
				}
				return
			}
			if err != nil || !slices.Equal(resp.GetTags(), r.tags) {
				t.Errorf("ListTags = %v, %v, want %v: %s", resp, err, r.tags, tc.reason)
			}
		})
	}
}

// TestLastAnswersWhileTheImageResolverIsAway resolves an image and lists tags with a version constraint while the
// image-resolver is asked each time, and then goes away.
func TestLastAnswersWhileTheImageResolverIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &resolver{tags: []string{"v1.0.0"}}
		client := remote(t, r)
		tagsOf := &imageresolverv1.ListTagsRequest{Repository: repository}
		image := &imageresolverv1.ResolveImageRequest{Image: repository + ":v1.0.0"}
		for i := range 600 {
			if i == 300 {
				r.err = fault.New(fault.Unavailable, "connection refused")
			}
			began := time.Now()
			tags, err := client.ListTags(t.Context(), tagsOf)
			if took := time.Since(began); took > 0 || err != nil || !slices.Equal(tags.GetTags(), r.tags) {
				t.Fatalf("ListTags = %v, %v after %s at second %d", tags, err, took, i)
			}
			resp, err := client.ResolveImage(t.Context(), image)
			if resp.GetDigest() != "sha256:1" || err != nil {
				t.Fatalf("ResolveImage = %v, %v at second %d", resp, err, i)
			}
			<-time.After(time.Second)
		}
		if n := r.asked.Load(); n < 600 || n > 740 {
			t.Errorf("%d questions in ten minutes, want two per second, and two per 5 seconds after the first half", n)
		}
	})
}

// TestDigestsAreResolvedOnce has the image-resolver answer with what it was asked and how often.
func TestDigestsAreResolvedOnce(t *testing.T) {
	r := &resolver{}
	tel, scrape := scrapetest.New(t)
	client := resolverclient.New(r, hangs, tel.Meters)
	for _, tc := range []struct {
		image, constraint string
		asked             int32 // so far
	}{
		{"fn:v1", "", 1}, {"fn:v1", "", 2}, {"fn:v1", "~1", 3}, {"fn@sha256:1", "", 4}, {"fn@sha256:1", "", 4},
	} {
		req := &imageresolverv1.ResolveImageRequest{Image: tc.image, TagConstraint: tc.constraint}
		got, err := client.ResolveImage(t.Context(), req)
		if want := tc.image + tc.constraint; err != nil || got.GetReference() != want || r.asked.Load() != tc.asked {
			t.Errorf("got %v, %v for %v after %d questions, want %d", got, err, req, r.asked.Load(), tc.asked)
		}
	}
	r.err = fault.New(fault.Unavailable, "away")
	got, err := client.ResolveImage(t.Context(), &imageresolverv1.ResolveImageRequest{Image: "fn:v1"})
	if err != nil || got.GetReference() != "fn:v1" {
		t.Errorf("got %v, %v while the image-resolver is away", got, err)
	}
	if want := `fn_stale_answers_total{kind="images"} 1`; !strings.Contains(scrape(), want) {
		t.Errorf("no %s in\n%s", want, scrape())
	}
}
