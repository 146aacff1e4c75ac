// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"cmp"
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/cache"
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/retry"
)

// unavailable is how a service sounds that cannot be reached.
var unavailable = fault.New(fault.Unavailable, "connection refused")

// denied is an answer, and not the one that was hoped for.
var denied = fault.New(fault.Precondition, "401 Unauthorized")

// service counts questions, and answers each with its number.
type service struct {
	mu    sync.Mutex
	asked int
	err   error         // the answer, if there is one
	takes time.Duration // until the answer
	size  int64         // of answers
	early time.Duration // how long before its caller's deadline it answers
	sofar error         // what it says then
}

func (s *service) Ask(ctx context.Context, _ string) (string, error) {
	s.mu.Lock()
	s.asked++
	said, err, takes := strconv.Itoa(s.asked), s.err, s.takes
	s.mu.Unlock()
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-s.early))
		defer cancel()
	}
	if !retry.Sleep(ctx, takes) {
		return "", cmp.Or(s.sofar, ctx.Err())
	}
	return said, err
}

// become changes how the service answers from now on.
func (s *service) become(takes time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takes, s.err = takes, err
}

// questions returns how many there were.
func (s *service) questions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// maxSize is how many bytes fit into the caches of the tests.
const maxSize = 10_000

type remoteCache = cache.Remote[string, string]

func newRemote(s *service) *remoteCache {
	return cache.NewRemote(
		cache.RemoteConfig[string, string]{
			Fetch:    s.Ask,
			Size:     func(string, string) int64 { return s.size },
			MaxBytes: maxSize,
		},
	)
}

func TestRemoteGet(t *testing.T) {
	tests := map[string]struct {
		reason string
		after  time.Duration
		takes  time.Duration
		err    error
		said   string
		waited time.Duration
		asked  int
	}{
		"fresh":     {reason: "a fresh entry asks no source", after: 9 * time.Second, said: "1", asked: 1},
		"not fresh": {reason: "the next caller gets the new answer", after: 11 * time.Second, said: "1", asked: 2},
		"away": {
			reason: "running pods do not depend on it",
			after:  59 * time.Minute,
			err:    unavailable,
			said:   "1",
			asked:  2,
		},
		"away for long": {reason: "what is old may be wrong", after: 61 * time.Minute, err: unavailable, asked: 2},
		"silent": {
			reason: "nor is that waited for long",
			after:  time.Minute,
			takes:  time.Hour,
			said:   "1",
			waited: 3 * time.Second,
			asked:  2,
		},
		"a refusal": {reason: "an answer is an answer, also a bad one", after: time.Minute, err: denied, asked: 2},
		"fresh, a refusal": {
			reason: "an error to come changes nothing yet",
			after:  time.Second,
			err:    denied,
			said:   "1",
			asked:  1,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := new(service)
				m := newRemote(s)
				if _, err := m.Get(t.Context(), "key"); err != nil {
					t.Fatal(err)
				}
				<-time.After(tc.after)
				s.become(tc.takes, tc.err)
				began := time.Now()
				got, err := m.Get(t.Context(), "key")
				waited := time.Since(began)
				synctest.Wait() // a refresh in the background has begun
				if waited != tc.waited || s.questions() != tc.asked {
					t.Errorf("waited %s for %d questions, want %s for %d: %s", waited, s.questions(), tc.waited, tc.asked, tc.reason)
				}
				if got != tc.said && tc.said != "" || (err == nil) != (tc.said != "") ||
					err != nil && fault.Of(err) != fault.Of(tc.err) {
					t.Errorf("%q, %v, want %q, %v: %s", got, err, tc.said, tc.err, tc.reason)
				}
				<-time.After(time.Minute) // every question has its end
			})
		})
	}
}

func TestMovedTagIsNoticed(t *testing.T) {
	tests := map[string]struct {
		reason string
		age    time.Duration
		first  string // what the first use gets
	}{
		"fresh":       {"no source is asked", 9 * time.Second, "1"},
		"in use":      {"the first has it asked for, the next have it", 11 * time.Second, "1"},
		"not in use":  {"the first waits for it", 61 * time.Second, "2"},
		"long unused": {"the first waits for it", 2 * time.Hour, "2"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := known(t, &service{takes: time.Second}, tc.age)
				if said, _, err := use(t, m); said != tc.first || err != nil {
					t.Errorf("%q, %v, want %q: %s", said, err, tc.first, tc.reason)
				}
				<-time.After(2 * time.Second)
				if said, _, err := use(t, m); tc.age > 9*time.Second && (said != "2" || err != nil) {
					t.Errorf("%q, %v two seconds later, want the new answer", said, err)
				}
			})
		})
	}
}

func TestARefusalInTheBackgroundCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(service)
		m := known(t, s, 10*time.Second)
		s.become(0, denied)
		if said, _, err := use(t, m); said != "1" || err != nil {
			t.Errorf("%q, %v, want what is known while it is fetched again", said, err)
		}
		synctest.Wait()
		for range 2 {
			if said, _, err := use(t, m); fault.Of(err) != fault.Precondition {
				t.Errorf("%q, %v, want the refusal, and not what was known before", said, err)
			}
		}
		s.become(0, nil)
		if said, _, err := use(t, m); said != "5" || err != nil {
			t.Errorf("%q, %v, want the new answer at once", said, err)
		}
	})
}

func TestRemoteIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{size: 10}
		m := newRemote(s)
		knows := func(key string) bool {
			before := s.questions()
			if _, err := m.Get(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			return s.questions() == before
		}
		for i := range 2500 {
			knows(strconv.Itoa(i))
		}
		if !knows("2499") {
			t.Error("the newest answer is not known")
		}
		s.size = maxSize + 1
		if knows("all"); knows("all") {
			t.Error("an answer is remembered that is too large")
		}
		if !knows("2499") {
			t.Error("an answer that is too large takes the place of others")
		}
		s.size = 10
		count := 0
		for i := range 2500 {
			if _, ok := m.Cached(strconv.Itoa(i)); ok {
				count++
			}
		}
		if count == 0 || count > maxSize/10 {
			t.Errorf("%d answers are known, want at most %d", count, maxSize/10)
		}
	})
}
