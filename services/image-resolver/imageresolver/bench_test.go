// SPDX-License-Identifier: Apache-2.0

package imageresolver_test

import (
	"slices"
	"testing"
	"time"

	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

// BenchmarkCachedResolve resolves an image that is known, by tag and by digest,
// and reports the median beside the mean.
func BenchmarkCachedResolve(b *testing.B) {
	s := open()(b)
	image := s.registry.Push(b, "fn:v1", function)
	r := startWith(b, s.config, telemetry.Discard())
	for name, ref := range map[string]string{"tag": ":v1", "digest": "@" + digest(b, image)} {
		b.Run(name, func(b *testing.B) {
			req := &imageresolverv1.ResolveImageRequest{Image: s.registry.Host + "/fn" + ref}
			if _, err := r.ResolveImage(b.Context(), req); err != nil {
				b.Fatal(err)
			}
			took := make([]time.Duration, 0, 1<<20)
			b.ReportAllocs()
			for b.Loop() {
				begin := time.Now()
				if _, err := r.ResolveImage(b.Context(), req); err != nil {
					b.Fatal(err)
				}
				if len(took) < cap(took) {
					took = append(took, time.Since(begin))
				}
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
		})
	}
}

// BenchmarkUnknownResolve resolves an image that has to be fetched: from a
// registry on this machine, so that what it shows is our own part.
func BenchmarkUnknownResolve(b *testing.B) {
	s := open()(b)
	s.registry.Push(b, "fn:v1", function)
	r := startWith(b, s.config, telemetry.Discard())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.ResolveImage(
			b.Context(),
			&imageresolverv1.ResolveImageRequest{Image: s.registry.Host + "/fn:v1", Refresh: true},
		); err != nil {
			b.Fatal(err)
		}
	}
}
