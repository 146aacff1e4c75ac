// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/admission"
)

// crowd is many requests of one claim that each run until they are told to end.
type crowd struct {
	gate    *admission.Gate
	mu      sync.Mutex
	started map[admission.Claim]int
	order   []admission.Claim
	end     chan struct{}
}

func newCrowd(limits admission.Limits) *crowd {
	return &crowd{gate: admission.New(limits), started: map[admission.Claim]int{}, end: make(chan struct{})}
}

// come has n requests of a claim wait or run.
func (c *crowd) come(t *testing.T, n int, claim admission.Claim) {
	for range n {
		go func() {
			release, err := c.gate.Acquire(t.Context(), claim)
			if err != nil {
				return
			}
			c.start(claim)
			<-c.end
			release()
		}()
		synctest.Wait()
	}
}

func (c *crowd) start(claim admission.Claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started[claim]++
	c.order = append(c.order, claim)
}

// endOne has one evaluation end, whichever it is.
func (c *crowd) endOne() {
	c.end <- struct{}{}
	synctest.Wait()
}

// finish has all end.
func (c *crowd) finish() {
	close(c.end)
	synctest.Wait()
}

func claim(function, caller string) admission.Claim {
	return admission.Claim{Function: function, Caller: caller}
}

// TestNoCrowdTakesAllSlots has requests that fill all slots and the queue, and one that
// comes after them: what it starts at once, and what not.
func TestNoCrowdTakesAllSlots(t *testing.T) {
	tests := map[string]struct {
		reason string
		crowds []admission.Claim
		comes  admission.Claim
		starts bool
	}{
		"another function": {
			"the looping function does not stop the others of its caller",
			[]admission.Claim{claim("loop", "porch")},
			claim("good", "porch"), true,
		},
		"another caller": {
			"one caller does not stop the others",
			[]admission.Claim{claim("loop", "a")},
			claim("loop", "b"), true,
		},
		"caller with many functions": {
			"it takes the reserve for functions, and not that for callers",
			[]admission.Claim{claim("loop", "a"), claim("f1", "a"), claim("f2", "a")},
			claim("loop", "b"), true,
		},
		"function with many callers": {
			"they take the reserve for callers, and not that for functions",
			[]admission.Claim{claim("loop", "a"), claim("loop", "b"), claim("loop", "c")},
			claim("good", "a"), true,
		},
		"the same": {
			"the reserve is for others",
			[]admission.Claim{claim("loop", "a")},
			claim("loop", "a"), false,
		},
		"unknown callers": {
			"callers that are not known share nothing",
			[]admission.Claim{claim("loop", "")},
			claim("loop", ""), false,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrowd(admission.Limits{Concurrent: 4, Reserve: 1, Queue: 100})
				for _, claim := range tc.crowds {
					c.come(t, 8, claim)
				}
				before := c.started[tc.comes]
				c.come(t, 1, tc.comes)
				if started := c.started[tc.comes] > before; started != tc.starts {
					t.Errorf("it started: %t, want %t: %s", started, tc.starts, tc.reason)
				}
				if n := c.gate.Running(); n > 4+2 {
					t.Errorf("%d run at once", n)
				}
				c.finish()
				wantCounts(t, c.gate, 0, 0)
			})
		})
	}
}

func TestOneFunctionMayUseAllSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(admission.Limits{Concurrent: 4, Reserve: 1, Queue: 100})
		c.come(t, 8, claim("fn", "porch"))
		wantCounts(t, c.gate, 4, 4)
		c.finish()
	})
}

// TestFreeSlotsGoToThoseWithFewest has a queue full of one function's requests, and some
// of another one behind them.
func TestFreeSlotsGoToThoseWithFewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(admission.Limits{Concurrent: 2, Queue: 100})
		c.come(t, 10, claim("loop", "porch"))
		c.come(t, 2, claim("good", "porch"))
		c.endOne()
		if c.started[claim("good", "porch")] != 1 {
			t.Errorf("the slot went to %v", c.order)
		}
		c.finish()
	})
}

// TestTheOldestIsServedInTheEnd has a request whose function is always running, and others
// that always have a smaller share.
func TestTheOldestIsServedInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(admission.Limits{Concurrent: 2, Queue: 100})
		c.come(t, 2, claim("busy", "other")) // it keeps one of the slots
		c.come(t, 1, claim("busy", "patient"))
		for i := range 4 {
			c.come(t, 2, claim(string(rune('a'+i)), "new"))
		}
		for range 4 {
			c.endOne()
		}
		if c.started[claim("busy", "patient")] != 1 {
			t.Errorf("it still waits after four slots became free: %v started", c.order)
		}
		c.finish()
	})
}

// TestAFullQueueHasAPlaceForOthers has one function's requests fill the queue.
func TestAFullQueueHasAPlaceForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.New(admission.Limits{Concurrent: 1, Queue: 4})
		release := acquire(t, g, fn)
		errs := make(chan error, 10)
		enter := func(ctx context.Context, claim admission.Claim) {
			go func() {
				release, err := g.Acquire(ctx, claim)
				if err == nil {
					release()
				}
				errs <- err
			}()
			synctest.Wait()
		}
		for range 4 {
			enter(t.Context(), fn)
		}
		enter(t.Context(), claim("good", "porch"))
		if err := <-errs; fault.Of(err) != fault.Exhausted {
			t.Errorf("the newest of the crowd got %v", err)
		} else if _, ok := fault.RetryAfter(err); !ok {
			t.Errorf("no hint when to try again: %v", err)
		}
		wantCounts(t, g, 1, 4)
		enter(t.Context(), fn)
		if err := <-errs; fault.Of(err) != fault.Exhausted {
			t.Errorf("one more of the crowd got %v", err)
		}
		release()
		for range 4 {
			if err := <-errs; err != nil {
				t.Errorf("one that waited got %v", err)
			}
		}
	})
}

// TestASlotGivenToACallerThatLeaves has a deadline pass in the moment in which a slot
// becomes free: it is not lost.
func TestASlotGivenToACallerThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.New(admission.Limits{Concurrent: 1, Queue: 1})
		release := acquire(t, g, fn)
		time.AfterFunc(time.Second, release)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if release, err := g.Acquire(ctx, fn); err == nil {
			release()
		}
		synctest.Wait()
		wantCounts(t, g, 0, 0)
	})
}
