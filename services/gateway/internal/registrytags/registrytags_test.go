// SPDX-License-Identifier: Apache-2.0

package registrytags_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/krm-function-runner/function-runner/libs/fault"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/registrytags"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// resolver is an image-resolver that knows one repository.
type resolver struct {
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
			tags, known, err := registrytags.Source{Lister: registrytags.NewCache(r, nil)}.Tags(t.Context(), tc.repository)
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

// TestSteadyUseDoesNotWait has evaluations with a version constraint go on while the
// resolver is asked now and then, and goes away.
func TestSteadyUseDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &resolver{tags: []string{"v1.0.0"}}
		cached := registrytags.NewCache(r, nil)
		servetest.Go(t, cached.Run)
		source := registrytags.Source{Lister: cached}
		for i := range 600 {
			if i == 300 {
				synctest.Wait()
				r.err = fault.New(fault.Unavailable, "connection refused")
			}
			began := time.Now()
			tags, known, err := source.Tags(t.Context(), repository)
			if took := time.Since(began); took > 0 || err != nil || !known || !slices.Equal(tags, r.tags) {
				t.Fatalf("Tags = %v, %v, %v after %s at second %d", tags, known, err, took, i)
			}
			<-time.After(time.Second)
		}
		synctest.Wait()
		if r.asked < 50 || r.asked > 61 {
			t.Errorf("%d questions in ten minutes, want one in ten seconds", r.asked)
		}
	})
}
