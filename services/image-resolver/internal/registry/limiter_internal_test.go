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
				slot.answered()
				slot.release()
			}
			if slot, err := limits.acquire(over, host); err == nil {
				slot.release()
			}
		})
	}
	taking.Wait()
	if len(limits.registries) != 0 || limits.queue.Len() != 0 || limits.answering != 0 || limits.silent != 0 {
		t.Errorf("%+v after the last fetch, want no registry left: callers choose them", limits)
	}
	for i := range 2 * maxProven {
		slot, err := limits.acquire(t.Context(), "answering"+strconv.Itoa(i))
		if err != nil {
			t.Fatal(err)
		}
		slot.answered()
		slot.release()
	}
	if got := limits.proven.Len(); got != maxProven {
		t.Errorf("%d registries are known to answer, want at most %d", got, maxProven)
	}
}
