package images_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/krm-function-runner/function-runner/libs/fault"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/pause"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/images"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// resolver counts questions, and answers with err if there is one.
type resolver struct {
	asked int
	err   error
	// takes is how long an answer takes.
	takes time.Duration
}

func (r *resolver) ResolveImage(ctx context.Context, req *imageresolverv1.ResolveImageRequest) (*imageresolverv1.ResolveImageResponse, error) {
	r.asked++
	answer, err := &imageresolverv1.ResolveImageResponse{Reference: req.GetImage(), Digest: strconv.Itoa(r.asked)}, r.err
	if !pause.For(ctx, r.takes) {
		return nil, ctx.Err()
	}
	return answer, err
}

func TestMemory(t *testing.T) {
	unavailable := fault.New(fault.Unavailable, "no route to the registry")
	denied := fault.New(fault.Precondition, "401 Unauthorized")
	tests := map[string]struct {
		reason string
		after  time.Duration
		err    error
		digest string
		asked  int
		class  fault.Class
	}{
		"fresh":              {"the warm path asks nobody", 9 * time.Second, nil, "1", 1, 0},
		"not fresh":          {"tags move", 11 * time.Second, nil, "2", 2, 0},
		"resolver away":      {"running pods do not depend on it", 59 * time.Minute, unavailable, "1", 2, 0},
		"away for long":      {"what is old may be wrong", 61 * time.Minute, unavailable, "", 2, fault.Unavailable},
		"registry says no":   {"an answer is an answer, also a bad one", time.Minute, denied, "", 2, fault.Precondition},
		"fresh, resolver up": {"an error to come changes nothing yet", time.Second, denied, "1", 1, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &resolver{}
				memory := images.New(r)
				if _, err := memory.ResolveImage(t.Context(), "fn:v1", ""); err != nil {
					t.Fatal(err)
				}
				timer := time.NewTimer(tc.after)
				<-timer.C
				r.err = tc.err
				got, err := memory.ResolveImage(t.Context(), "fn:v1", "")
				if got.GetDigest() != tc.digest || r.asked != tc.asked || (err != nil) != (tc.digest == "") {
					t.Errorf("digest %q, %v after %d questions, want %q after %d: %s", got.GetDigest(), err, r.asked, tc.digest, tc.asked, tc.reason)
				}
				if err != nil && fault.Of(err) != tc.class {
					t.Errorf("error %v, want class %v", err, tc.class)
				}
			})
		})
	}
}

func TestMemoryIsBounded(t *testing.T) {
	r := &resolver{}
	memory := images.New(r)
	for i := range 25_000 {
		if _, err := memory.ResolveImage(t.Context(), strconv.Itoa(i), ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := memory.ResolveImage(t.Context(), "24999", ""); err != nil || r.asked != 25_000 {
		t.Errorf("%v after %d questions, want the newest to be known", err, r.asked)
	}
}
