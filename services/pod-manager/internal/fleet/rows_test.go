// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

// simulate runs a simulation. What callers and the referee find fails the test.
func simulate(t *testing.T, s setup, do func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, s)
		defer w.end()
		wait(5 * time.Second) // until all replicas know each other
		do(w)
		now := w.counts()
		for _, f := range now.failures {
			t.Error(f)
		}
		t.Logf("%d requests, %d cold starts, %d pods created, %d deleted, slowest %s", now.requests, now.cold, now.created,
			len(now.deleted), now.slowest)
	})
}

// load has functions called again and again, until end.
func (w *world) load(functions int, every, hold time.Duration, end time.Duration) {
	for begin := time.Now(); time.Since(begin) < end; wait(every) {
		for n := range functions {
			w.call(image(n), hold)
		}
	}
}

// TestReplicaThatReachesNoPodDeletesNone is row 1: the replica reaches the Kubernetes API, but no
// pod.
func TestReplicaThatReachesNoPodDeletesNone(t *testing.T) {
	for name, alone := range map[string]bool{"members": false, "without membership": true} {
		t.Run(name, func(t *testing.T) {
			s := usual()
			s.Alone = alone
			simulate(t, s, func(w *world) {
				w.load(12, 5*time.Second, 4*time.Second, 30*time.Second)
				lost := w.owner(image(0))
				lost.podless.Store(true)
				for n := range 12 { // new functions, of each replica
					w.call(image(100+n), 90*time.Second)
				}
				w.load(12, 5*time.Second, 4*time.Second, 5*time.Minute)
				if !alone && lost.keeper.Owners().StoodDown == "" {
					t.Error("the replica owns functions still")
				}
				for _, r := range w.replicas {
					list, err := r.ListPools(context.Background(), &podmanagerv1.ListPoolsRequest{})
					told := strings.Contains(strings.Join(list.GetProblems(), "; "), lost.name+": ")
					if err != nil || told != (r == lost || !alone) {
						t.Errorf("%s lists the problems %q, %v", r.name, list.GetProblems(), err)
					}
				}
				for _, d := range w.counts().deleted {
					if d.by == lost.name && d.at > 36*time.Second {
						t.Errorf("after %s the replica deleted %s", d.at, d.pod)
					}
				}
				lost.podless.Store(false)
				w.load(12, 5*time.Second, 4*time.Second, 30*time.Second)
				if why := lost.keeper.Owners().StoodDown; why != "" {
					t.Errorf("the replica reaches pods again, and owns none: %s", why)
				}
			})
		})
	}
}

// TestReplicaWithoutAPIHandsItsCallersOn is row 4: the owner loses the Kubernetes API, and callers
// want functions that have no pod.
func TestReplicaWithoutAPIHandsItsCallersOn(t *testing.T) {
	simulate(t, usual(), func(w *world) {
		w.load(12, time.Second, 500*time.Millisecond, 5*time.Second)
		cut := w.owner(image(0))
		cut.link.Cut()
		w.load(12, time.Second, 500*time.Millisecond, 3*time.Second) // warm ones go on
		w.forgetSlowest()
		for n := range 30 { // of each replica
			w.call(image(100+n), time.Second)
		}
		wait(30 * time.Second)
		if slowest := w.counts().slowest; slowest > 9*time.Second {
			t.Errorf("a cold start took %s", slowest)
		}
		w.forgetSlowest()
		for n := range 30 { // when the replica has noticed
			w.call(image(200+n), time.Second)
		}
		wait(30 * time.Second)
		if slowest := w.counts().slowest; slowest > 2*time.Second {
			t.Errorf("a cold start took %s, long after the outage began", slowest)
		}
		for _, r := range w.replicas {
			list, err := r.ListPools(context.Background(), &podmanagerv1.ListPoolsRequest{})
			told := slices.Contains(list.GetProblems(), r.name+": the Kubernetes API does not renew the Lease of this replica")
			if err != nil || told != (r == cut) {
				t.Errorf("%s lists the problems %q, %v", r.name, list.GetProblems(), err)
			}
		}
	})
}

// TestCallersOfAProcessOutlastAnOutage has the Kubernetes API not answer for longer than a replica counts as alive,
// while callers who have no other replica want functions without a pod.
func TestCallersOfAProcessOutlastAnOutage(t *testing.T) {
	s := usual()
	s.InProcess = true
	simulate(t, s, func(w *world) {
		w.load(6, time.Second, 500*time.Millisecond, 5*time.Second)
		for _, r := range w.replicas {
			r.link.Cut()
		}
		for n := range 6 { // before the replicas notice, and after
			w.call(image(100+n), time.Second)
			wait(5 * time.Second)
		}
		for _, r := range w.replicas {
			r.link.Heal()
		}
		w.forgetSlowest()
		wait(30 * time.Second)
		if slowest := w.counts().slowest; slowest > 40*time.Second {
			t.Errorf("a cold start took %s, want it soon after the outage of 30 s", slowest)
		}
	})
}

// TestTakeoverNeedsNoColdStart has owners end in all ways while functions are in use.
func TestTakeoverNeedsNoColdStart(t *testing.T) {
	tests := map[string]struct {
		reason string
		end    func(*replica)
		within time.Duration
	}{
		"left":   {"it deletes its Lease", (*replica).leave, time.Second},
		"killed": {"its Lease lasts for seconds", (*replica).kill, time.Second},
		"silent": {
			"its Lease is renewed, but gateways do not reach it", func(r *replica) { r.silent.Store(true) },
			3 * time.Second,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			simulate(t, usual(), func(w *world) {
				w.load(12, time.Second, 500*time.Millisecond, 20*time.Second)
				before := w.counts()
				w.forgetSlowest()
				tc.end(w.owner(image(0)))
				w.load(12, time.Second, 500*time.Millisecond, time.Minute)
				now := w.counts()
				if now.cold != before.cold || now.created != before.created {
					t.Errorf("%d cold starts, %d pods created: %s", now.cold-before.cold, now.created-before.created, tc.reason)
				}
				if now.slowest > tc.within {
					t.Errorf("a warm request took %s: %s", now.slowest, tc.reason)
				}
				for _, d := range now.deleted {
					t.Errorf("after %s %s deleted %s", d.at, d.by, d.pod)
				}
			})
		})
	}
}

// TestNewReplicaDisturbsNothing has replicas come while functions are in use.
func TestNewReplicaDisturbsNothing(t *testing.T) {
	s := usual()
	s.Replicas = 1
	simulate(t, s, func(w *world) {
		w.load(12, time.Second, 500*time.Millisecond, 10*time.Second)
		cold := w.counts().cold
		for range 3 {
			w.add()
			w.load(12, time.Second, 500*time.Millisecond, 10*time.Second)
		}
		if now := w.counts(); now.cold != cold || len(now.deleted) > 0 {
			t.Errorf("%d cold starts, %d pods deleted", now.cold-cold, len(now.deleted))
		}
	})
}

// TestQuotaOfPodsIsSharedByReplicas has more functions than pods may exist, of three owners.
func TestQuotaOfPodsIsSharedByReplicas(t *testing.T) {
	s := usual()
	s.Quota = 20
	s.Limits.MaxPods = 1
	s.Lag = 100 * time.Millisecond
	s.Limits.TTL = 30 * time.Minute
	simulate(t, s, func(w *world) {
		for n := range 60 {
			w.call(image(n), 2*time.Second)
		}
		wait(11 * time.Minute)
		w.forgetSlowest()
		for n := range 5 { // at the quota, with all pods idle
			w.call(image(1000+n), time.Second)
			wait(20 * time.Second)
		}
		if slowest := w.counts().slowest; slowest > 5*time.Second {
			t.Errorf("a new function waited %s at the quota", slowest)
		}
		owner := w.owner(image(2000))
		for n := range 20 { // all pods belong to another replica than the owner of the new function
			w.call(w.imageOfAnother(owner, n), time.Second)
			wait(5 * time.Second)
		}
		w.forgetSlowest()
		w.call(image(2000), time.Second)
		wait(20 * time.Second)
		if slowest := w.counts().slowest; slowest > 5*time.Second {
			t.Errorf("a new function waited %s while another replica owned all idle pods", slowest)
		}
	})
}

// TestEverythingIsCollected: owners come and go, and in the end there is no pod.
func TestEverythingIsCollected(t *testing.T) {
	simulate(t, usual(), func(w *world) {
		w.load(12, 2*time.Second, time.Second, 10*time.Second)
		w.replicas[0].kill()
		w.load(12, 2*time.Second, time.Second, 10*time.Second)
		w.add()
		w.load(12, 2*time.Second, time.Second, 10*time.Second)
		w.replicas[1].leave()
		wait(5 * time.Minute)
		if pods := w.server.Pods(); len(pods) > 0 {
			t.Errorf("%d pods are left", len(pods))
		}
	})
}

// TestNetworkThatIsBackEndsNoPod has a replica without membership lose the network of the pods for a minute, and then
// reach them again. The first pod that answers shows that the network is back, and not that the others are broken.
func TestNetworkThatIsBackEndsNoPod(t *testing.T) {
	s := script{Setup: usual(), Steps: []step{
		{36655 * time.Millisecond, "add", 0, 0},
		{55555 * time.Millisecond, "call", 6, 3769 * time.Millisecond},
		{64630 * time.Millisecond, "podless", 2, 0},
		{83550 * time.Millisecond, "call", 8, 3783 * time.Millisecond},
		{84357 * time.Millisecond, "call", 6, 3545 * time.Millisecond},
		{115266 * time.Millisecond, "call", 6, 4261 * time.Millisecond},
		{116641 * time.Millisecond, "call", 3, 715 * time.Millisecond},
		{117576 * time.Millisecond, "call", 0, 2951 * time.Millisecond},
	}}
	s.Setup.Alone = true
	s.Setup.Lag = 5 * time.Millisecond
	s.Setup.Limits.TTL = 20 * time.Second
	s.Setup.Limits.ReadyTimeout = 10 * time.Second
	for _, broken := range s.play(t) {
		t.Error(broken)
	}
}
