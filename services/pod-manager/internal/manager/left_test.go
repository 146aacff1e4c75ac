// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/testing/await"
	"github.com/krm-function-runner/function-runner/libs/testing/leasetest/leaseserver"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/manager"
)

// waitingIn counts the leases that wait in a manager's queues.
func waitingIn(t *testing.T, m *manager.Manager) (waiting int) {
	t.Helper()
	pools, err := m.ListPools(t.Context(), &podmanagerv1.ListPoolsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pools.GetPools() {
		waiting += int(p.GetWaiting() + p.GetActive())
	}
	return waiting
}

// TestNoLeaseIsLeftWaiting has leases come to nothing in each way there is. None of them stays in
// a queue.
func TestNoLeaseIsLeftWaiting(t *testing.T) {
	tests := map[string]struct {
		reason, image string
		looking       time.Duration // how long the image is looked up
		broken        string
	}{
		"no image":        {"the resolver failed", "bad:v1", 0, ""},
		"slow image":      {"its caller leaves while it is looked up", "fn:v1", time.Hour, ""},
		"slow, no image":  {"the resolver fails when no caller waits any more", "bad:v1", 2 * time.Minute, ""},
		"no pod":          {"its caller leaves the queue", "fn:v1", 0, ""},
		"pod that breaks": {"those in the queue are turned away", "fn:v1", 0, "ErrImagePull"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := start(t, &cluster{broken: tc.broken, silent: tc.broken == ""}, resolver{takes: tc.looking})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if held, err := m.Lease(ctx, open(tc.image), quietly); err == nil {
					t.Fatalf("a lease of %v", held.Granted())
				}
				<-time.After(5 * time.Minute)
				if n := waitingIn(t, m); n != 0 {
					t.Errorf("%d still wait: %s", n, tc.reason)
				}
			})
		})
	}
}

// TestNoLeaseOfABrokenStreamIsLeftWaiting breaks the stream of a caller whose lease waits.
func TestNoLeaseOfABrokenStreamIsLeftWaiting(t *testing.T) {
	m := start(t, &cluster{silent: true}, resolver{})
	client := lease.NewClient(servetest.HTTP2Client(t), "http://"+leaseserver.Start(t, m))
	ctx, breakOff := context.WithCancel(t.Context())
	_, err := client.Lease(ctx, open("fn:v1"), func(w *lease.Waiting) {
		if w.GetPhase() == podmanagerv1.Phase_PHASE_RESOLVING { // on a busy machine; it is not in a queue yet
			return
		}
		if waitingIn(t, m) != 1 {
			t.Error("it is said to wait, and does not")
		}
		breakOff()
	})
	if err == nil {
		t.Fatal("a lease of a pod that never came")
	}
	await.Equal(t, "leases that wait", func() int { return waitingIn(t, m) }, 0) // the server notices a moment later
}
