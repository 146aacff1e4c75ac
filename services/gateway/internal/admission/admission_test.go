// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/admission"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fn is what all want where it makes no difference.
var fn = admission.Claim{Function: "fn", Caller: "porch"}

// acquire takes a slot, which has to succeed.
func acquire(t *testing.T, g *admission.Gate, claim admission.Claim) (release func()) {
	t.Helper()
	release, err := g.Acquire(t.Context(), claim)
	if err != nil {
		t.Error(err)
		return func() {}
	}
	return release
}

// wantCounts compares what the gate counts.
func wantCounts(t *testing.T, g *admission.Gate, running, waiting int) {
	t.Helper()
	if g.Running() != running || g.Waiting() != waiting {
		t.Errorf("%d run and %d wait, want %d and %d", g.Running(), g.Waiting(), running, waiting)
	}
}

func TestAcquireServesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.New(admission.Limits{Concurrent: 1, Queue: 10})
		release := acquire(t, g, fn)
		var order []int
		for i := range 10 {
			go func() {
				release := acquire(t, g, fn)
				order = append(order, i) // one at a time is what the gate is for
				release()
			}()
			synctest.Wait() // so that it is in the queue before the next one
		}
		wantCounts(t, g, 1, 10)
		release()
		synctest.Wait()
		wantCounts(t, g, 0, 0)
		for i, got := range order {
			if got != i {
				t.Fatalf("served in the order %v", order)
			}
		}
	})
}

func TestAcquireRefusesPastQueue(t *testing.T) {
	tests := map[string]admission.Limits{
		"no queue": {Concurrent: 1},
		"queue":    {Concurrent: 2, Queue: 3},
		"negative": {Concurrent: -1, Queue: -1}, // counts as the least
	}
	for name, limits := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := admission.New(limits)
				done := make(chan struct{})
				for range max(1, limits.Concurrent) + max(0, limits.Queue) {
					go func() {
						defer acquire(t, g, fn)()
						<-done
					}()
				}
				synctest.Wait()
				_, err := g.Acquire(t.Context(), fn)
				if hint, ok := fault.RetryAfter(err); fault.Of(err) != fault.Exhausted || !ok || hint <= 0 {
					t.Errorf("error %v of class %v with hint %v, want one of class exhausted with a hint", err, fault.Of(err), hint)
				}
				close(done)
				synctest.Wait()
				wantCounts(t, g, 0, 0)
			})
		})
	}
}

func TestAcquireEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.New(admission.Limits{Concurrent: 1, Queue: 1})
		release := acquire(t, g, fn)

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := g.Acquire(ctx, fn); fault.Of(err) != fault.DeadlineExceeded {
			t.Errorf("a wait past the deadline: %v of class %v", err, fault.Of(err))
		}
		wantCounts(t, g, 1, 0)
		release()

		errGone := errors.New("caller gone")
		gone, leave := context.WithCancelCause(t.Context())
		leave(errGone)
		if _, err := g.Acquire(gone, fn); fault.Of(err) != fault.Canceled || !errors.Is(err, errGone) {
			t.Errorf("a caller that has left already: %v of class %v", err, fault.Of(err))
		}
		wantCounts(t, g, 0, 0)
	})
}

func TestReleaseTwice(t *testing.T) {
	g := admission.New(admission.Limits{Concurrent: 1})
	release := acquire(t, g, fn)
	release()
	release()
	wantCounts(t, g, 0, 0)
	defer acquire(t, g, fn)()
	if _, err := g.Acquire(t.Context(), fn); fault.Of(err) != fault.Exhausted {
		t.Errorf("a second slot came from a second release: %v", err)
	}
}

// TestAcquireStarvesNoCaller has more callers than slots: every caller gets its slots in
// the end, and never too many run at once.
func TestAcquireStarvesNoCaller(t *testing.T) {
	const callers, rounds = 16, 100
	limits := admission.Limits{Concurrent: 3, Queue: callers}
	g := admission.New(limits)
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			for range rounds {
				release, err := g.Acquire(t.Context(), fn)
				if err != nil {
					t.Error(err)
					return
				}
				if n := g.Running(); n > limits.Concurrent {
					t.Errorf("%d run at once", n)
				}
				release()
			}
		})
	}
	running.Wait()
	wantCounts(t, g, 0, 0)
}
