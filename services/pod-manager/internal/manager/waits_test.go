// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/testing/scrapetest"
)

// TestWaitingLeasesAreVisible has leases wait for what the pools know nothing of.
func TestWaitingLeasesAreVisible(t *testing.T) {
	tests := map[string]struct {
		reason   string
		synced   bool // whether the Kubernetes API answers
		resolver resolver
	}{
		"api":      {"a Kubernetes API that does not answer", false, resolver{}},
		"resolver": {"a registry that does not answer", true, resolver{takes: time.Hour}},
		"pod":      {"a pod that Kubernetes does not show", true, resolver{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tel, scrape := scrapetest.New(t)
				synced := make(chan struct{})
				if tc.synced {
					close(synced)
				}
				m := startMeasured(t, &cluster{silent: true}, tc.resolver, synced, nil, tel.Meters.Meter("pod-manager"))
				ctx, cancel := context.WithCancel(t.Context())
				for range 2 {
					go func() { _, _ = m.Lease(ctx, open("fn:v1"), quietly) }()
				}
				<-time.After(5 * time.Second)
				if metrics := scrape(); !strings.Contains(metrics, "fn_queue_depth 2\n") {
					t.Errorf("two leases wait, want them in:\n%s: %s", metrics, tc.reason)
				}
				cancel()
				synctest.Wait()
				if metrics := scrape(); !strings.Contains(metrics, "fn_queue_depth 0\n") {
					t.Errorf("leases that were given up are counted:\n%s", metrics)
				}
			})
		})
	}
}

// TestTheWaitForTheAPIIsAPhase grants a lease three seconds after it was asked for.
func TestTheWaitForTheAPIIsAPhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		synced := make(chan struct{})
		m := startWith(t, &cluster{}, resolver{takes: time.Second}, synced, nil)
		time.AfterFunc(3*time.Second, func() { close(synced) })
		held, err := m.Lease(t.Context(), open("fn:v1"), quietly)
		if err != nil {
			t.Fatal(err)
		}
		spent := make(map[podmanagerv1.Phase]time.Duration)
		for _, p := range held.Granted().GetPhases() {
			spent[p.GetPhase()] += p.GetDuration().AsDuration()
		}
		queued, resolving := spent[podmanagerv1.Phase_PHASE_QUEUED], spent[podmanagerv1.Phase_PHASE_RESOLVING]
		if queued != 3*time.Second || resolving != time.Second {
			t.Errorf("phases %v, want 3 s in the queue and 1 s of resolving", spent)
		}
		held.Finish(podmanagerv1.LeaseRequest_OUTCOME_DONE, "")
	})
}
