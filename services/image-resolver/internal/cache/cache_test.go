// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/cache"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// staleWait is how long callers wait for a fetch while there is a stale entry.
const staleWait = 2 * time.Second

var life = cache.Lifetime{TTL: 10 * time.Minute, Stale: time.Hour, Failure: 10 * time.Second}

// source is where values come from: a number that tells the fetches apart.
type source struct {
	*cache.Cache[string, int]
	fetches atomic.Int64
	// takes is how long a fetch takes.
	takes time.Duration
	// err, if not nil, is what fetches bring.
	err error
	// other, if not nil, is the fetch of all keys but "k".
	other func() (int, error)
}

func newSource(t *testing.T, edit func(*cache.Config[string, int])) *source {
	t.Helper()
	s := new(source)
	cfg := cache.Config[string, int]{
		Fetch:        s.fetch,
		Lifetime:     func(string) cache.Lifetime { return life },
		MaxBytes:     1 << 20,
		MaxFetches:   100,
		FetchTimeout: time.Minute,
		StaleWait:    staleWait,
		Size:         func(key string, _ int) int64 { return int64(len(key)) + 8 },
	}
	if edit != nil {
		edit(&cfg)
	}
	s.Cache = cache.New(cfg)
	return s
}

func (s *source) fetch(ctx context.Context, key string) (int, error) {
	if s.other != nil && key != "k" {
		return s.other()
	}
	n := s.fetches.Add(1)
	select {
	case <-time.After(s.takes):
		return int(n), s.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// expect asks for key "k" and compares.
func (s *source) expect(t *testing.T, value int, from cache.Source) {
	t.Helper()
	got, err := s.Get(t.Context(), "k")
	if err != nil || got.Value != value || got.Source != from {
		t.Errorf("Get = %+v, %v, want %d by %s", got, err, value, from)
	}
}

// pass lets the time of a test's bubble go by.
func pass(d time.Duration) { <-time.After(d) }

func TestOneFetchForAllCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(t, nil)
		s.takes = time.Second
		var asking sync.WaitGroup
		for range 10_000 {
			asking.Go(func() { s.expect(t, 1, cache.Miss) })
		}
		asking.Wait()
		s.expect(t, 1, cache.Hit)
	})
}

func TestEntryInUseIsRefreshedInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(t, nil)
		s.expect(t, 1, cache.Miss)
		s.takes = time.Second
		pass(life.TTL/2 - time.Nanosecond)
		s.expect(t, 1, cache.Hit)
		pass(time.Nanosecond)
		s.expect(t, 1, cache.Refresh)
		s.expect(t, 1, cache.Hit) // one renewal at a time
		pass(2 * time.Second)
		s.expect(t, 2, cache.Hit)
	})
}

func TestFailedRefresh(t *testing.T) {
	tests := map[string]struct {
		reason string
		err    error
		// late is what asking brings when the TTL is over.
		late fault.Class
	}{
		"source is away": {"an old answer is better than none", fault.New(fault.Unavailable, "no route"), -1},
		"source says no": {
			"an answer that was taken back is not given", fault.New(fault.Precondition, "deleted"), fault.Precondition,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSource(t, nil)
				s.expect(t, 1, cache.Miss)
				s.err = tc.err
				pass(life.TTL / 2)
				s.expect(t, 1, cache.Refresh)
				synctest.Wait()
				s.expect(t, 1, cache.Hit) // the failure holds: no other renewal
				pass(life.TTL)
				for range 2 {
					_, err := s.Get(t.Context(), "k")
					if got := fault.Of(err); (tc.late < 0) != (err == nil) || (err != nil && got != tc.late) {
						t.Errorf("after the TTL: %v, want class %v: %s", err, tc.late, tc.reason)
					}
				}
				synctest.Wait()
				if got := s.fetches.Load(); got != 3 {
					t.Errorf("%d fetches, want 3: the first, the renewal, and one after the TTL", got)
				}
				pass(life.Stale)
				if _, err := s.Get(t.Context(), "k"); !errors.Is(err, tc.err) {
					t.Errorf("when even a stale answer is too old: %v, want %v", err, tc.err)
				}
			})
		})
	}
}

func TestFailureIsRememberedBriefly(t *testing.T) {
	tests := map[string]struct {
		reason string
		err    error
		hold   time.Duration
		forget bool
		life   cache.Lifetime
	}{
		"brief": {
			"an unknown image must not load its registry", fault.New(fault.Precondition, "unknown"), life.Failure, false, life,
		},
		"retry hint": {
			"a registry that says when is not asked before",
			fault.WithRetryAfter(fault.New(fault.Unavailable, "slow down"), time.Minute), time.Minute, false, life,
		},
		"long hint": {
			"no longer than an answer would hold", fault.WithRetryAfter(fault.New(fault.Unavailable, "slow down"), 24*time.Hour),
			life.TTL, false, life,
		},
		"of a digest": {
			"what holds for ever is not kept away for ever",
			fault.WithRetryAfter(fault.New(fault.Unavailable, "slow down"), time.Minute), time.Minute, false,
			cache.Lifetime{Failure: time.Second},
		},
		"forgotten": {"new credentials may help at once", fault.New(fault.Precondition, "unauthorized"), 0, true, life},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSource(t, func(c *cache.Config[string, int]) {
					c.Lifetime = func(string) cache.Lifetime { return tc.life }
				})
				s.err = tc.err
				ask := func(fetches int64) {
					t.Helper()
					if _, err := s.Get(t.Context(), "k"); !errors.Is(err, tc.err) || s.fetches.Load() != fetches {
						t.Errorf("Get: %v after %d fetches, want %v after %d: %s", err, s.fetches.Load(), tc.err, fetches, tc.reason)
					}
				}
				ask(1)
				if tc.forget {
					s.ForgetFailures()
				} else {
					pass(tc.hold - time.Nanosecond)
					ask(1)
					pass(time.Nanosecond)
				}
				ask(2)
			})
		})
	}
}

// TestFailureOfARunningFetchIsForgotten has a fetch fail that began before its cause was gone.
func TestFailureOfARunningFetchIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(t, nil)
		s.expect(t, 1, cache.Miss)
		s.takes = 10 * time.Second
		s.err = errors.New("wrong password")
		const other = "other"
		go func() { _, _ = s.Get(t.Context(), other) }()
		pass(time.Second)
		s.ForgetFailures()
		pass(10 * time.Second)
		synctest.Wait()
		s.takes, s.err = 0, nil
		if got, err := s.Get(t.Context(), other); err != nil || got.Value != 3 {
			t.Errorf("%+v, %v, want that it is asked again at once", got, err)
		}
		s.expect(t, 1, cache.Refresh) // successes stay
	})
}

// TestValuesOfBeforeAreFetchedAgain holds even for values that never expire: new credentials may change them.
func TestValuesOfBeforeAreFetchedAgain(t *testing.T) {
	for name, expiry := range map[string]cache.Lifetime{"expiring": life, "everlasting": {Failure: life.Failure}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSource(t, func(c *cache.Config[string, int]) {
					c.Lifetime = func(string) cache.Lifetime { return expiry }
				})
				s.takes = time.Second
				go s.expect(t, 1, cache.Miss)
				synctest.Wait()
				s.ForgetFailures()
				pass(s.takes)
				synctest.Wait()
				s.err = fault.New(fault.Precondition, "wrong password")
				s.expect(t, 1, cache.Refresh) // its fetch had begun before
				pass(s.takes)
				synctest.Wait()
				s.expect(t, 1, cache.Hit) // the failure holds: no other renewal
				s.err = nil
				pass(expiry.Failure)
				s.expect(t, 1, cache.Refresh)
				pass(s.takes)
				synctest.Wait()
				s.expect(t, 3, cache.Hit)
			})
		})
	}
}

func TestFetchBelongsToAllCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(t, nil)
		s.takes = 10 * time.Second
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var asking sync.WaitGroup
		asking.Go(func() {
			if _, err := s.Get(short, "k"); fault.Of(err) != fault.DeadlineExceeded {
				t.Errorf("short caller: %v, want its own deadline", err)
			}
		})
		synctest.Wait() // the caller with the short deadline starts the fetch
		asking.Go(func() { s.expect(t, 1, cache.Miss) })
		asking.Wait()
	})
}

func TestFetchContinuesWithoutCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(t, nil)
		s.takes = 10 * time.Second
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Get(ctx, "k"); fault.Of(err) != fault.DeadlineExceeded {
			t.Errorf("%v, want the caller's deadline", err)
		}
		pass(10 * time.Second)
		s.expect(t, 1, cache.Hit)
	})
}

// TestPanicInAFetchIsAnError of its callers, who may be in goroutines that nobody else protects.
func TestPanicInAFetchIsAnError(t *testing.T) {
	var log strings.Builder
	s := newSource(t, func(c *cache.Config[string, int]) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	s.other = func() (int, error) { panic("a defect") }
	if _, err := s.Get(t.Context(), "other"); fault.Of(err) != fault.Internal {
		t.Errorf("Get: %v, want Internal", err)
	}
	if !strings.Contains(log.String(), "a defect") || !strings.Contains(log.String(), "cache_test.go") {
		t.Errorf("the log does not say what the panic was, and where:\n%s", log.String())
	}
	s.expect(t, 1, cache.Miss)
}

func TestSlowSourceIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(t, nil)
		s.takes = time.Hour
		start := time.Now()
		_, err := s.Get(t.Context(), "k")
		if fault.Of(err) != fault.Unavailable || time.Since(start) != time.Minute {
			t.Errorf("Get: %v after %v, want Unavailable after the fetch's own minute", err, time.Since(start))
		}
	})
}

func TestTooManyFetches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(t, func(c *cache.Config[string, int]) { c.MaxFetches = 2 })
		s.takes = time.Second
		var asking sync.WaitGroup
		for i := range 2 {
			asking.Go(func() { _, _ = s.Get(t.Context(), strconv.Itoa(i)) })
		}
		synctest.Wait()
		_, err := s.Get(t.Context(), "one more")
		if _, hint := fault.RetryAfter(err); fault.Of(err) != fault.Exhausted || !hint {
			t.Errorf("Get: %v, want Exhausted with a hint when to retry", err)
		}
		asking.Wait()
	})
}

func TestRenewOnDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(t, nil)
		s.expect(t, 1, cache.Miss)
		if got, err := s.Renew(t.Context(), "k"); err != nil || got.Value != 2 {
			t.Errorf("Get = %v, %v, want a new value", got, err)
		}
		s.err = fault.New(fault.Unavailable, "away")
		if _, err := s.Renew(t.Context(), "k"); !errors.Is(err, s.err) {
			t.Errorf("Renew: %v, want the failure: who asks for the present answer wants no other", err)
		}
	})
}

func TestValueForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(t, func(c *cache.Config[string, int]) {
			c.Lifetime = func(string) cache.Lifetime { return cache.Lifetime{Failure: time.Second} }
		})
		for range 2 {
			if got, err := s.Get(t.Context(), "k"); err != nil || got.Value != 1 {
				t.Errorf("Get = %v, %v, want the first value", got, err)
			}
			pass(1000 * time.Hour)
		}
	})
}

func TestMemoryStaysWithinItsBound(t *testing.T) {
	t.Parallel()
	const bound = 64 << 10
	s := newSource(t, func(c *cache.Config[string, int]) { c.MaxBytes = bound })
	const q = "in use"
	if _, err := s.Get(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	for i := range 1_000_000 {
		s.Put(strconv.Itoa(i), i)
		if i%100 != 0 {
			continue
		}
		if got, err := s.Get(t.Context(), q); err != nil || got.Source != cache.Hit {
			t.Fatalf("after %d others: %v, %v, want that what is in use stays", i, got, err)
		}
		if got := s.Bytes(); got > bound {
			t.Fatalf("%d bytes after %d values, want at most %d", got, i, bound)
		}
	}
	if _, ok := s.Peek("0"); ok {
		t.Error("what was not used for longest is still there")
	}
	if _, ok := s.Peek("999999"); !ok {
		t.Error("the last value is not there")
	}
}

func TestRunEndsFetches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(t, nil)
		s.takes = time.Hour
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		go func() { ended <- s.Run(ctx) }()
		go func() {
			_, err := s.Get(context.Background(), "k")
			ended <- err
		}()
		synctest.Wait()
		stop()
		for range 2 {
			if err := <-ended; err != nil && fault.Of(err) != fault.Unavailable {
				t.Errorf("ended with %v", err)
			}
		}
		if _, err := s.Get(t.Context(), "later"); fault.Of(err) != fault.Unavailable {
			t.Errorf("Get after the end: %v, want Unavailable", err)
		}
	})
}
