// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"strconv"
	"sync"
	"testing"
)

func TestRegistriesAreForgotten(t *testing.T) {
	limits := newLimiter(8)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	var taking sync.WaitGroup
	for i := range 1000 {
		taking.Go(func() {
			host := strconv.Itoa(i % 100)
			if slot, err := limits.acquire(t.Context(), host); err == nil {
				slot.recordAnswer()
				slot.release(false)
			}
			if slot, err := limits.acquire(over, host); err == nil {
				slot.release(true)
			}
		})
	}
	taking.Wait()
	if len(limits.registries) != 0 || !limits.proven.TryAcquire(8) || !limits.unproven.TryAcquire(4) {
		t.Errorf("%+v after the last fetch, want no registry left: callers choose them", limits)
	}
	limits.proven.Release(8)
	limits.unproven.Release(4)
	for i := range 2 * maxProven {
		slot, err := limits.acquire(t.Context(), "answering"+strconv.Itoa(i))
		if err != nil {
			t.Fatal(err)
		}
		slot.recordAnswer()
		slot.release(false)
	}
	if got := limits.answered.Len(); got != maxProven {
		t.Errorf("%d registries are known to answer, want at most %d", got, maxProven)
	}
}
