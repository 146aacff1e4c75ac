// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/cache"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
)

// TestStaleAnswersAreCounted has the service go away: only answers whose time is over count.
func TestStaleAnswersAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, stale := new(service), 0
		m := cache.NewRemote(cache.RemoteConfig[string, string]{
			Fetch: s.Ask, Size: func(string, string) int64 { return 1 }, MaxBytes: maxSize,
			Stale: func(context.Context) { stale++ },
		})
		servetest.Go(t, m.Run)
		for range 20 { // it answers
			_, _, _ = use(t, m)
			<-time.After(5 * time.Second)
		}
		if stale != 0 {
			t.Errorf("%d answers count as stale while the service is there", stale)
		}
		s.become(0, unavailable)
		for range 24 { // two minutes
			if _, _, err := use(t, m); err != nil {
				t.Fatal(err)
			}
			<-time.After(5 * time.Second)
		}
		if stale < 10 || stale > 14 { // those of the second minute
			t.Errorf("%d answers count as stale in two minutes without the service", stale)
		}
	})
}
