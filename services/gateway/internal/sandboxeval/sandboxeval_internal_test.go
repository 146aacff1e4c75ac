// SPDX-License-Identifier: Apache-2.0

package sandboxeval

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"github.com/krm-function-runner/function-runner/libs/fault"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalmetrics"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
)

// TestImagesThatAreNotThere checks the errors of images that are not opened. None is NotFound, on which
// callers go on to another runtime.
func TestImagesThatAreNotThere(t *testing.T) {
	for class, want := range map[fault.Class]fault.Class{
		fault.Precondition: fault.Precondition, fault.NotFound: fault.Unavailable, fault.Exhausted: fault.Exhausted,
		fault.DeadlineExceeded: fault.Unavailable, fault.Canceled: fault.Unavailable, fault.Denied: fault.Denied,
	} {
		err := notOpened(t.Context(), "fn:v1", time.Now(), "looking up the image", fault.New(class, "why"))
		if fault.Of(err) != want || !strings.HasPrefix(err.Error(), "unable to get the sandbox for fn:v1: why") {
			t.Errorf("%v became %v, %v, want %v", class, fault.Of(err), err, want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		<-ctx.Done()
		const phase = "pulling the image, 3 of 7 layers, 12 of 80 MiB"
		err := notOpened(ctx, "fn:v1", start, phase, errors.New("any"))
		want := "function evaluation timed out for fn:v1: after 3s, " + phase + ": "
		if fault.Of(err) != fault.DeadlineExceeded || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	})
}

// pulled is an image whose pull reports a phase.
type pulled struct{ during func() }

func (pulled) ResolveImage(
	context.Context, *imageresolverv1.ResolveImageRequest,
) (*imageresolverv1.ResolveImageResponse, error) {
	return &imageresolverv1.ResolveImageResponse{Digest: "sha256:a", Command: []string{"/fn"}}, nil
}

func (pulled) ListTags(
	context.Context, *imageresolverv1.ListTagsRequest,
) (*imageresolverv1.ListTagsResponse, error) {
	return nil, errors.New("no tags are listed")
}

func (p pulled) Open(_ context.Context, _, _ string, phase func(string)) (string, func(), error) {
	phase("pulling the image, 1 of 3 layers")
	p.during()
	return "/root", func() {}, nil
}

func (pulled) WhenFull(func()) {}

// TestCallersSeeWhatAPullDoes looks at what evaluations wait for while an image is pulled.
func TestCallersSeeWhatAPullDoes(t *testing.T) {
	active := evalmetrics.NewActive(noop.NewMeterProvider())
	var waiting []evalmetrics.Waiting
	images := pulled{func() { waiting = active.Waiting(9) }}
	e := &Evaluator{
		cfg: Config{Resolver: images, Images: images}, kept: keeper{images: map[string]*openImage{}},
		local: new(evaluation.Local),
	}
	measured := active.Begin("fn:v1")
	image, _, err := e.openImage(t.Context(), evaluation.Request{Given: "fn:v1", Measured: measured})
	if err != nil {
		t.Fatal(err)
	}
	image.releaseImage()
	const want = "pulling the image, 1 of 3 layers"
	if len(waiting) != 1 || waiting[0].Phase != "pull" || waiting[0].Reason != want {
		t.Errorf("it waits for %+v, want %q", waiting, want)
	}
	if steps := measured.Steps(); len(steps) != 1 || steps[0].Reason != want {
		t.Errorf("steps %+v, want the reason", steps)
	}
}
