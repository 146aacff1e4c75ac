// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/manager"
)

// TestFirstComeFirstServed has two hundred callers share capacity for one lease. They come while its
// pod is made, and while it is in use.
func TestFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers, early = 200, 50
		m := start(t, &cluster{}, resolver{})
		m.Configure(func(s *manager.Settings) { s.Defaults.MaxQueue = callers })
		var (
			all    sync.WaitGroup
			mu     sync.Mutex
			served []int
		)
		for caller := range callers {
			all.Go(func() {
				held, err := m.Lease(t.Context(), open("fn:v1"), quietly)
				if err != nil {
					t.Errorf("caller %d: %v", caller, err)
					return
				}
				mu.Lock()
				served = append(served, caller)
				mu.Unlock()
				<-time.After(time.Second)
				held.Finish(podmanagerv1.LeaseRequest_OUTCOME_DONE, "")
			})
			synctest.Wait() // this one has come, and waits
			if caller == early {
				<-time.After(10 * time.Second)
			}
		}
		all.Wait()
		if !slices.IsSorted(served) || len(served) != callers {
			t.Errorf("%d callers of %d were served, in the order %v: want first come, first served",
				len(served), callers, served)
		}
	})
}
