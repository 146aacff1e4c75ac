// SPDX-License-Identifier: Apache-2.0

package images_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/images"
)

// resolver answers with what it was asked, unless it is away or hangs.
type resolver struct {
	asked int
	err   error
	hangs bool
}

func (r *resolver) ResolveImage(ctx context.Context, req *images.Request) (*images.Image, error) {
	r.asked++
	if r.hangs {
		<-ctx.Done()
		return nil, fault.New(fault.Of(ctx.Err()), "wait: %w", ctx.Err())
	}
	if r.err != nil {
		return nil, r.err
	}
	return &images.Image{Reference: req.GetImage() + req.GetTagConstraint(), Digest: strconv.Itoa(r.asked)}, nil
}

// world is a Last that asks a resolver.
type world struct {
	resolver
	*images.Last
	stale int
}

// run runs a test in virtual time, with one answer for fn:v1.
func run(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		w.Last = images.New(&w.resolver, func(context.Context) { w.stale++ })
		w.resolve(t, t.Context(), "fn:v1", "1")
		test(t, w)
	})
}

// resolve checks the digest that an image has.
func (w *world) resolve(t *testing.T, ctx context.Context, image, digest string) {
	t.Helper()
	got, err := w.Last.ResolveImage(ctx, &images.Request{Image: image})
	if err != nil || got.GetReference() != image || got.GetDigest() != digest {
		t.Errorf("got %v, %v, want %s with the digest %s", got, err, image, digest)
	}
}

func TestImageResolverIsAskedEachTime(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		w.resolve(t, t.Context(), "fn:v1", "2")
		got, err := w.Last.ResolveImage(t.Context(), &images.Request{Image: "fn:v1", TagConstraint: "~1"})
		if err != nil || got.GetReference() != "fn:v1~1" || w.stale != 0 {
			t.Errorf("got %v, %v: a constraint is another question", got, err)
		}
		w.resolve(t, t.Context(), "fn@sha256:1", "4")
		w.resolve(t, t.Context(), "fn@sha256:1", "4")
	})
}

func TestLastAnswersWhileTheImageResolverIsAway(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		w.err = fault.New(fault.Unavailable, "away")
		for range 600 {
			w.resolve(t, t.Context(), "fn:v1", "1")
			<-time.After(time.Second)
		}
		if w.asked > 130 || w.stale != 600 {
			t.Errorf("%d questions and %d stale answers in 10 minutes", w.asked, w.stale)
		}
		if _, err := w.Last.ResolveImage(t.Context(), &images.Request{Image: "new:v1"}); fault.Of(err) != fault.Unavailable {
			t.Errorf("an image that was never resolved: %v", err)
		}
		w.err = nil
		<-time.After(6 * time.Second)
		w.resolve(t, t.Context(), "fn:v1", strconv.Itoa(w.asked+1))
		w.err = fault.New(fault.Unavailable, "away")
		<-time.After(2 * time.Hour)
		if _, err := w.Last.ResolveImage(t.Context(), &images.Request{Image: "fn:v1"}); fault.Of(err) != fault.Unavailable {
			t.Errorf("after two hours: %v, want that nothing is known", err)
		}
	})
}

// TestAnswersOfTheImageResolverAreFinal, also if they are errors.
func TestAnswersOfTheImageResolverAreFinal(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		w.err = fault.New(fault.Precondition, "the tag was deleted")
		if _, err := w.Last.ResolveImage(t.Context(), &images.Request{Image: "fn:v1"}); fault.Of(err) != fault.Precondition {
			t.Errorf("error %v", err)
		}
	})
}

// TestCallersWithLittleTimeGetLastAnswers while the image-resolver hangs.
func TestCallersWithLittleTimeGetLastAnswers(t *testing.T) {
	for left, most := range map[time.Duration]time.Duration{
		time.Second: 500 * time.Millisecond, 4 * time.Second: 2 * time.Second, time.Minute: 3 * time.Second,
	} {
		run(t, func(t *testing.T, w *world) {
			w.hangs = true
			ctx, cancel := context.WithTimeout(t.Context(), left)
			defer cancel()
			begin := time.Now()
			w.resolve(t, ctx, "fn:v1", "1")
			if took := time.Since(begin); took != most {
				t.Errorf("a caller with %s waited %s, want %s", left, took, most)
			}
			w.resolve(t, ctx, "fn:v1", "1")
			if took := time.Since(begin); took != most {
				t.Errorf("the next caller waited until %s", took)
			}
		})
	}
}
