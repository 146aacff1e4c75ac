// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/cache"
	"github.com/krm-function-runner/function-runner/libs/fault"
)

// ask gets an answer n times at once and returns how many got each. It fails the test
// if a caller waits longer than within.
func ask(t *testing.T, m *remoteCache, n int, within time.Duration) map[string]int {
	t.Helper()
	got := make(map[string]int)
	var mu sync.Mutex
	var asking sync.WaitGroup
	for range n {
		asking.Go(func() {
			said, took, err := use(t, m)
			if err != nil || took > within {
				t.Errorf("%v after %s, want an answer within %s", err, took, within)
			}
			mu.Lock()
			defer mu.Unlock()
			got[said]++
		})
	}
	asking.Wait()
	return got
}

// TestManyAskOnce has many come together, at first and when the answer is old.
func TestManyAskOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{takes: time.Second}
		m := newRemote(s)
		for i, want := range []string{"1", "2"} {
			if got := ask(t, m, 100, time.Second); got[want] != 100 || s.questions() != i+1 {
				t.Errorf("answers %v to %d questions, want one question for all", got, s.questions())
			}
			<-time.After(2 * time.Minute)
		}
	})
}

// TestACallerThatLeavesTakesNoOtherAlong has the one leave who asks for all.
func TestACallerThatLeavesTakesNoOtherAlong(t *testing.T) {
	limited := fault.New(fault.Exhausted, "still being fetched, after this: pull rate limit")
	tests := map[string]struct {
		early time.Duration
		sofar error
		class fault.Class
	}{
		"its deadline passes":                           {0, nil, fault.DeadlineExceeded},
		"the service says so, a little before":          {100 * time.Millisecond, nil, fault.DeadlineExceeded},
		"the service says by then what it knows so far": {100 * time.Millisecond, limited, fault.Exhausted},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &service{takes: 10 * time.Second, early: tc.early, sofar: tc.sofar}
				m := newRemote(s)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				left := make(chan error, 1)
				go func() {
					_, err := m.Get(ctx, "key")
					left <- err
				}()
				synctest.Wait()
				if got := ask(t, m, 10, 11*time.Second); got["2"] != 10 || s.questions() != 2 {
					t.Errorf("answers %v to %d questions, want a second question for the callers that stayed", got, s.questions())
				}
				if err := <-left; fault.Of(err) != tc.class {
					t.Errorf("%v for the one who left, want class %v", err, tc.class)
				}
			})
		})
	}
}

func TestCallersDeadlinesHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(service)
		m := known(t, s, 10*time.Minute)
		s.become(time.Second, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := m.Get(ctx, "key"); fault.Of(err) != fault.DeadlineExceeded {
			t.Errorf("%v, want the caller's deadline", err)
		}
		if said, took, err := use(t, m); said != "2" || took != 900*time.Millisecond || err != nil {
			t.Errorf("%q after %v, %v, want what was asked for already", said, took, err)
		}
	})
}

// TestSlowAnswerIsForLaterCallers has an answer take longer than callers wait.
func TestSlowAnswerIsForLaterCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(service)
		m := known(t, s, 2*time.Minute)
		s.become(8*time.Second, nil)
		if got := ask(t, m, 1, 3*time.Second); got["1"] != 1 {
			t.Errorf("got %v, want the known answer", got)
		}
		<-time.After(6 * time.Second)
		if got := ask(t, m, 1, 0); got["2"] != 1 || s.questions() != 2 {
			t.Errorf("got %v after %d questions, want the answer to the second", got, s.questions())
		}
	})
}

// stuck is a service that gives a number of answers and no more.
type stuck struct {
	answers    int32
	asked, now atomic.Int32
}

func (s *stuck) Ask(ctx context.Context, _ string) (string, error) {
	s.now.Add(1)
	defer s.now.Add(-1)
	if s.asked.Add(1) > s.answers {
		<-ctx.Done()
	}
	return "", ctx.Err()
}

func TestRefreshesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 1000
		s := &stuck{answers: keys}
		m := cache.NewRemote(
			cache.RemoteConfig[string, string]{Fetch: s.Ask, Size: func(string, string) int64 { return 1 }, MaxBytes: 1 << 20},
		)
		for i := range keys {
			if _, err := m.Get(t.Context(), strconv.Itoa(i)); err != nil {
				t.Fatal(err)
			}
		}
		recallAll := func() {
			<-time.After(15 * time.Second)
			for i := range keys {
				if _, ok := m.Cached(strconv.Itoa(i)); !ok {
					t.Fatalf("%d is not known", i)
				}
			}
			synctest.Wait()
		}
		recallAll()
		if now := s.now.Load(); now != 256 {
			t.Errorf("%d questions at a time, want 256", now)
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := m.Run(ctx); err != nil || s.now.Load() != 0 {
			t.Errorf("%v, and %d questions go on after the end", err, s.now.Load())
		}
		recallAll()
		if s.now.Load() != 0 {
			t.Error("asked in the background after the end")
		}
	})
}

// TestPanicInAFetchDelaysNoOtherCaller has the asking itself panic.
func TestPanicInAFetchDelaysNoOtherCaller(t *testing.T) {
	m := cache.NewRemote(cache.RemoteConfig[string, string]{
		Fetch:    func(context.Context, string) (string, error) { panic("a defect") },
		Size:     func(string, string) int64 { return 1 },
		MaxBytes: maxSize,
	})
	for range 2 {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic is lost")
				}
			}()
			_, _ = m.Get(t.Context(), "key")
		}()
	}
}
