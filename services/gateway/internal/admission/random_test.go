// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/admission"
)

// history is a random run of a gate with callers that come, wait, leave and hog.
type history struct {
	gate   *admission.Gate
	limits admission.Limits
	random *rand.Rand

	mu      sync.Mutex
	running map[admission.Claim]int
	waiting []*waiter // in the order of their arrival
}

// waiter is one that waits. Passed counts the slots that became free meanwhile, those of the
// reserves left out, which it may have only if it runs nothing.
type waiter struct {
	claim  admission.Claim
	passed int
}

// TestRandomHistories holds for random histories that the bounds hold, that the reserves are only for
// functions and callers that run nothing, that no slot is free while a request waits, that each
// request is served or told why not, and that each one is served before long.
func TestRandomHistories(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			h := &history{
				random: random, running: map[admission.Claim]int{},
				limits: admission.Limits{Concurrent: 1 + random.IntN(6), Reserve: random.IntN(3), Queue: 1 + random.IntN(30)},
			}
			h.gate = admission.New(h.limits)
			for range 400 {
				h.come(t)
				synctest.Wait()
				h.check(t)
				time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond) //nolint:forbidigo // virtual time
			}
			time.Sleep(time.Hour) //nolint:forbidigo // virtual time
			synctest.Wait()
			wantCounts(t, h.gate, 0, 0)
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// claims are few, and some come more often than others.
func (h *history) claim() admission.Claim {
	functions, callers := []string{"loop", "loop", "loop", "a", "b", "c"}, []string{"x", "x", "x", "y", "z", ""}
	return admission.Claim{
		Function: functions[h.random.IntN(len(functions))], Caller: callers[h.random.IntN(len(callers))],
	}
}

// come has one request come.
func (h *history) come(t *testing.T) {
	w := &waiter{claim: h.claim()}
	took, timeout := time.Duration(h.random.IntN(5000))*time.Millisecond, time.Hour
	if h.random.IntN(5) == 0 {
		timeout = time.Duration(h.random.IntN(3000)) * time.Millisecond
	}
	h.mu.Lock()
	h.waiting = append(h.waiting, w)
	h.mu.Unlock()
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		release, err := h.gate.Acquire(ctx, w.claim)
		h.gone(t, w, err)
		if err == nil {
			time.Sleep(took) //nolint:forbidigo // virtual time
			h.freed(w.claim)
			release()
		}
	}()
}

// gone removes a request from the queue. The request at position n, counted from one, is
// served before 4n slots have become free: every fourth slot goes to the oldest request.
func (h *history) gone(t *testing.T, w *waiter, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting = slices.DeleteFunc(h.waiting, func(other *waiter) bool { return other == w })
	if most := 4 * (h.limits.Queue + 1); w.passed > most {
		t.Errorf("a request waited while %d slots became free, and may wait for %d", w.passed, most)
	}
	if class := fault.Of(err); err != nil && class != fault.Exhausted && class != fault.DeadlineExceeded {
		t.Errorf("a request got %v", err)
	}
	if err == nil {
		h.running[w.claim]++
	}
}

// freed counts a slot that becomes free.
func (h *history) freed(claim admission.Claim) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running[claim]--
	if h.gate.Running() > h.limits.Concurrent {
		return
	}
	for _, w := range h.waiting {
		w.passed++
	}
}

// check holds the bounds.
func (h *history) check(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	running, waiting := h.gate.Running(), h.gate.Waiting()
	if most := h.limits.Concurrent + 2*h.limits.Reserve; running > most || waiting > h.limits.Queue {
		t.Errorf("%d run and %d wait, with limits %+v", running, waiting, h.limits)
	}
	if waiting > 0 && running < h.limits.Concurrent {
		t.Errorf("%d wait while %d of %d slots are in use", waiting, running, h.limits.Concurrent)
	}
	if waiting != len(h.waiting) {
		t.Errorf("%d wait, and the gate says %d", len(h.waiting), waiting)
	}
	for _, w := range h.waiting {
		if h.idle(w.claim) && running < h.limits.Concurrent+h.limits.Reserve {
			t.Errorf("%v waits though it runs nothing and the reserve is free", w.claim)
		}
	}
	h.checkReserves(t, running)
}

// checkReserves holds that what runs in the reserves are functions and callers that ran
// nothing before: none of their claims runs twice.
func (h *history) checkReserves(t *testing.T, running int) {
	t.Helper()
	once := 0
	for claim, n := range h.running {
		if n > h.limits.Concurrent {
			t.Errorf("%d of %v run in %d slots: the reserve is for others", n, claim, h.limits.Concurrent)
		}
		if n == 1 {
			once++
		}
	}
	if running > h.limits.Concurrent+once {
		t.Errorf("%d run in %d slots, and only %d claims once: %v", running, h.limits.Concurrent, once, h.running)
	}
}

// idle reports whether nothing of a claim's function runs, or of its caller.
func (h *history) idle(claim admission.Claim) bool {
	function, caller := true, claim.Caller != ""
	for other, n := range h.running {
		function = function && (n == 0 || other.Function != claim.Function)
		caller = caller && (n == 0 || other.Caller != claim.Caller)
	}
	return function || caller
}
