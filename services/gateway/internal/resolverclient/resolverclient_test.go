// SPDX-License-Identifier: Apache-2.0

package resolverclient_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	"go.uber.org/goleak"

	"github.com/krm-function-runner/function-runner/libs/fault"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1/imageresolverv1connect"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/resolverclient"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// resolver is an image-resolver that knows one repository.
type resolver struct {
	imageresolverv1connect.UnimplementedImageResolverServiceHandler
	tags  []string
	err   error // the answer, if there is one
	asked int
}

const repository = "example.com/fn"

func (r *resolver) ListTags(
	_ context.Context, req *imageresolverv1.ListTagsRequest,
) (*imageresolverv1.ListTagsResponse, error) {
	r.asked++
	if r.err == nil && req.GetRepository() != repository {
		return nil, rpcfault.ToConnect(fault.New(fault.NotFound, "NAME_UNKNOWN"))
	}
	return &imageresolverv1.ListTagsResponse{Tags: r.tags}, rpcfault.ToConnect(r.err)
}

func (r *resolver) ResolveImage(
	context.Context, *imageresolverv1.ResolveImageRequest,
) (*imageresolverv1.ResolveImageResponse, error) {
	r.asked++
	return &imageresolverv1.ResolveImageResponse{Digest: "sha256:1"}, rpcfault.ToConnect(r.err)
}

func remote(t *testing.T, r *resolver) *resolverclient.Remote {
	t.Helper()
	client, err := resolverclient.NewRemote(r, noop.NewMeterProvider())
	if err != nil {
		t.Fatal(err)
	}
	return client
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
			tags, known, err := resolverclient.TagSource{Resolver: remote(t, r)}.Tags(t.Context(), tc.repository)
			if tc.want != nil {
				if known || err == nil || fault.Of(err) != fault.Of(tc.want) || err.Error() != tc.want.Error() {
					t.Errorf("Tags = %v, %v, %v, want %v: %s", tags, known, err, tc.want, tc.reason)
				}
				return
			}
			if err != nil || !known || !slices.Equal(tags, r.tags) {
				t.Errorf("Tags = %v, %v, %v, want %v: %s", tags, known, err, r.tags, tc.reason)
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
		source := resolverclient.TagSource{Resolver: client}
		image, err := imagename.Parse(repository+":v1.0.0", "")
		if err != nil {
			t.Fatal(err)
		}
		for i := range 600 {
			if i == 300 {
				r.err = fault.New(fault.Unavailable, "connection refused")
			}
			began := time.Now()
			tags, known, err := source.Tags(t.Context(), repository)
			if took := time.Since(began); took > 0 || err != nil || !known || !slices.Equal(tags, r.tags) {
				t.Fatalf("Tags = %v, %v, %v after %s at second %d", tags, known, err, took, i)
			}
			if digest, err := resolverclient.Digest(t.Context(), client, image); digest != "sha256:1" || err != nil {
				t.Fatalf("Digest = %q, %v at second %d", digest, err, i)
			}
			<-time.After(time.Second)
		}
		if r.asked < 600 || r.asked > 740 {
			t.Errorf("%d questions in ten minutes, want two per second, and two per 5 seconds after the first half", r.asked)
		}
	})
}
