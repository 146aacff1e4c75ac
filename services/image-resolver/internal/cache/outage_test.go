// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/cache"
)

func TestOutageDelaysNoCaller(t *testing.T) {
	away, limited := fault.New(fault.Unavailable, "no route"), fault.New(fault.Exhausted, "429")
	tests := map[string]struct {
		reason string
		takes  time.Duration
		err    error
		// idle is the age at the first request.
		idle time.Duration
		// stall is how long all who ask one after the other may wait in all.
		stall time.Duration
	}{
		"in use, source hangs":       {"a renewal before the TTL has failed", time.Hour, nil, 0, 0},
		"in use, source refuses":     {"a renewal before the TTL has failed", 1500 * time.Millisecond, away, 0, 0},
		"in use, source is limited":  {"it does not say no", 0, limited, 0, 0},
		"not in use, source hangs":   {"the first one finds out", time.Hour, nil, 2 * life.TTL, staleWait},
		"not in use, source refuses": {"the first one finds out", 1500 * time.Millisecond, away, 2 * life.TTL, staleWait},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSource(t, nil)
				s.expect(t, 1, cache.Miss)
				known := time.Now()
				s.takes = tc.takes
				s.err = tc.err
				pass(tc.idle)
				var stalled time.Duration
				for time.Since(known) < life.Stale-staleWait {
					start := time.Now()
					if got, err := s.Get(t.Context(), "k"); err != nil || got.Value != 1 {
						t.Fatalf("at the age of %v: %+v, %v, want the stale answer", time.Since(known), got, err)
					}
					stalled += time.Since(start)
					pass(time.Second)
				}
				if stalled > tc.stall {
					t.Errorf("callers waited %v, want at most %v: %s", stalled, tc.stall, tc.reason)
				}
				if got := s.fetches.Load(); got < 10 {
					t.Errorf("%d fetches, want that the source is asked again and again", got)
				}
				pass(time.Minute) // the last fetch ends
				synctest.Wait()
				pass(staleWait)
				if _, err := s.Get(t.Context(), "k"); !slices.Contains(
					[]fault.Class{fault.Unavailable, fault.Exhausted},
					fault.Of(err),
				) {
					t.Errorf("when even a stale answer is too old: %v, want the failure", err)
				}
			})
		})
	}
}

func TestOutageEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(t, nil)
		s.expect(t, 1, cache.Miss)
		s.err = fault.New(fault.Unavailable, "no route")
		pass(life.TTL)
		s.expect(t, 1, cache.Hit)
		s.err = nil
		pass(life.Failure)
		s.expect(t, 1, cache.Refresh)
		synctest.Wait()
		s.expect(t, 3, cache.Hit)
	})
}

func TestFirstToAskAfterTheTTL(t *testing.T) {
	tests := map[string]struct {
		reason string
		takes  time.Duration
		err    error
		full   bool
		// want and from are the answer, or class is that of the error.
		want  int
		from  cache.Source
		class fault.Class
	}{
		"source answers": {"a new answer is worth a little time", time.Second, nil, false, 2, cache.Miss, 0},
		"source is slow": {"but not more", 5 * time.Second, nil, false, 1, cache.Refresh, 0},
		"source says no": {
			"an answer that was taken back is not given", time.Second, fault.New(fault.Precondition, "deleted"), false, 0,
			cache.Miss, fault.Precondition,
		},
		"too many fetches": {"an old answer is better than none", 0, nil, true, 1, cache.Hit, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSource(t, func(c *cache.Config[string, int]) { c.MaxFetches = 1 })
				s.expect(t, 1, cache.Miss)
				pass(life.TTL)
				s.takes = tc.takes
				s.err = tc.err
				if tc.full {
					s.other = func() (int, error) { pass(time.Minute); return 0, nil }
					go func() { _, _ = s.Get(t.Context(), "other") }()
					synctest.Wait()
				}
				got, err := s.Get(t.Context(), "k")
				if (err == nil && (got.Value != tc.want || got.Source != tc.from)) || fault.Of(err) != tc.class {
					t.Errorf("Get = %+v, %v, want %d by %s, or class %v: %s", got, err, tc.want, tc.from, tc.class, tc.reason)
				}
				pass(time.Minute) // what goes on in the background ends
				if tc.from == cache.Refresh {
					s.expect(t, 2, cache.Hit)
				}
			})
		})
	}
}

// TestStaleWaitIsPerFetch also has callers with little time: they get the stale entry shortly before their deadline.
func TestStaleWaitIsPerFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(t, nil)
		s.expect(t, 1, cache.Miss)
		s.takes = 10 * time.Second
		pass(life.TTL)
		for range 2 {
			short, cancel := context.WithTimeout(t.Context(), staleWait/4)
			if got, err := s.Get(short, "k"); err != nil || got.Value != 1 || short.Err() != nil {
				t.Errorf("short caller: %v, %v, want the stale entry in time", got, err)
			}
			<-short.Done() // Get returned a little before
			cancel()
		}
		start := time.Now()
		s.expect(t, 1, cache.Refresh)
		if got := time.Since(start); got != staleWait/2 {
			t.Errorf("waited %v, want what is left of the fetch's time", got)
		}
		start = time.Now()
		s.expect(t, 1, cache.Refresh)
		if got := time.Since(start); got != 0 {
			t.Errorf("waited %v for a fetch that is known to be slow", got)
		}
		pass(10 * time.Second)
		s.expect(t, 2, cache.Hit)
	})
}
