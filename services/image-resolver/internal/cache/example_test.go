// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/cache"
)

func ExampleCache() {
	digests := cache.New(cache.Config[string, string]{
		Fetch: func(_ context.Context, image string) (string, error) { return "digest of " + image, nil },
		Lifetime: func(string) cache.Lifetime {
			return cache.Lifetime{TTL: time.Minute, Stale: time.Hour, Failure: time.Second}
		},
		Size:     func(image, digest string) int64 { return int64(len(image) + len(digest)) },
		MaxBytes: 1 << 20, MaxFetches: 8, FetchTimeout: time.Minute, StaleWait: time.Second,
		Log: slog.Default(),
	})
	ctx, stop := context.WithCancel(context.Background())
	for range 2 {
		answer, err := digests.Get(ctx, "fn:v1")
		fmt.Println(answer.Value, answer.Source, err)
	}
	stop()
	fmt.Println(digests.Run(ctx)) // Run ends when ctx is done, after all fetches
	// Output:
	// digest of fn:v1 miss <nil>
	// digest of fn:v1 hit <nil>
	// <nil>
}
