// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/cache"
)

// keeper is a source that keeps three entries for an hour.
type keeper struct {
	*source
	// away is what fetches bring; nil for values.
	away atomic.Pointer[error]
	// slow is how long the first fetch takes.
	slow time.Duration
}

// fail has fetches bring an error from now on.
func (s *keeper) fail(class fault.Class) {
	err := fault.New(class, "no answer")
	s.away.Store(&err)
}

// keeping runs a keeper. Keys with the prefix "digest" never expire.
func keeping(t *testing.T) *keeper {
	t.Helper()
	s := new(keeper)
	s.source = newSource(t, func(c *cache.Config[string, int]) {
		c.KeepFor = time.Hour
		c.MaxKept = 3
		c.FetchTimeout = life.TTL
		c.Fetch = func(context.Context, string) (int, error) {
			n := s.fetches.Add(1)
			if n == 1 {
				pass(s.slow)
			}
			if away := s.away.Load(); away != nil {
				return 0, *away
			}
			return int(n), nil
		}
		c.Lifetime = func(key string) cache.Lifetime {
			if strings.HasPrefix(key, "digest") {
				return cache.Lifetime{}
			}
			return life
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Run(ctx) }() // it returns nil
	t.Cleanup(func() { cancel(); <-ended })
	return s
}

// ask asks for a key, and reports whether the answer was an entry.
func (s *keeper) ask(t *testing.T, key string) bool {
	t.Helper()
	got, err := s.Get(t.Context(), key)
	if err != nil {
		t.Errorf("Get(%s): %v", key, err)
	}
	return got.Source == cache.Hit || got.Source == cache.Refresh
}

// TestEntriesInUseNeverExpire asks for entries rarely.
func TestEntriesInUseNeverExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := keeping(t)
		s.ask(t, "kept")
		s.ask(t, "digest")
		for range 3 {
			pass(59 * time.Minute)
			if !s.ask(t, "kept") {
				t.Error("an entry in use expires")
			}
		}
		if n := s.fetches.Load(); n > 3*60/5+10 {
			t.Errorf("%d fetches in three hours, of a lifetime of ten minutes", n)
		}
	})
}

// TestSlowFetchesAreKept has searches for entries to refresh come while the first fetch is under way.
func TestSlowFetchesAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := keeping(t)
		s.slow = life.TTL / 4
		s.ask(t, "k")
		pass(50 * time.Minute)
		if n := s.fetches.Load(); n < 5 {
			t.Errorf("%d fetches in 50 minutes: the entry is not kept", n)
		}
	})
}

// TestEntriesOutOfUseAreForgotten has an entry that is not asked for any more, one that its source refuses, and more
// of them than are kept.
func TestEntriesOutOfUseAreForgotten(t *testing.T) {
	for name, test := range map[string]func(t *testing.T, s *keeper){
		"not asked for": func(*testing.T, *keeper) { pass(61 * time.Minute) },
		"refused": func(_ *testing.T, s *keeper) {
			s.fail(fault.Precondition)
			pass(20 * time.Minute)
		},
		"too many": func(t *testing.T, s *keeper) {
			for i := range 3 {
				pass(time.Second)
				s.ask(t, strconv.Itoa(i))
			}
			before := s.fetches.Load()
			pass(10 * time.Minute)
			if n := s.fetches.Load() - before; n > 3*3 {
				t.Errorf("%d fetches in ten minutes, want those of three entries", n)
			}
			pass(51 * time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := keeping(t)
				s.ask(t, "k")
				test(t, s)
				before := s.fetches.Load()
				pass(time.Hour)
				if n := s.fetches.Load() - before; n > 0 {
					t.Errorf("%d fetches that nothing needs", n)
				}
			})
		})
	}
}

// TestKeptEntriesOutlastOutages has a source that is away for a while.
func TestKeptEntriesOutlastOutages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := keeping(t)
		s.ask(t, "k")
		s.fail(fault.Unavailable)
		pass(30 * time.Minute)
		if n := s.fetches.Load(); n < 5 || n > 40 {
			t.Errorf("a source that is away is asked %d times in 30 minutes", n)
		}
		s.away.Store(nil)
		pass(3 * time.Minute)
		if !s.ask(t, "k") {
			t.Error("an entry is not refreshed after an outage")
		}
	})
}
