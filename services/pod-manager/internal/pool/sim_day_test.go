// SPDX-License-Identifier: Apache-2.0

//go:build !race

package pool_test

import (
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// TestDay lets a day pass for ten functions that are used now and then, while things
// go wrong. The referee sees to it with each event that no pod is deleted while it is
// in use, and with each second that none outlives its time to live by more than a scan.
// Nothing in it runs at a time: make unit runs it without the race detector only.
func TestDay(t *testing.T) {
	t.Parallel()
	const functions = 10
	w := newWorld(1, setup{
		Limits: pool.Limits{
			MaxPods: 3, MaxWaitlistLength: 2, MaxConcurrency: 4, MaxQueue: 100,
			TTL: 30 * time.Minute, ReadyTimeout: 5 * time.Minute,
		},
		Quota: 20, SchedulingTimeout: 30 * time.Second, Scan: time.Minute, Template: "v0", Faults: true,
	})
	evaluations, pods := 0, make(map[string]bool)
	w.watch = func(action pool.Action) {
		if a, ok := action.(pool.Grant); ok {
			evaluations++
			pods[a.UID] = true
		}
	}
	for i := range functions {
		w.use(string(rune('a'+i)), i+1)
	}
	w.every(3*time.Hour, func() {
		w.do(stimulus{What: "template", N: w.now.Hour() % 4})
	})
	w.every(5*time.Hour, func() { w.do(stimulus{What: "api down", N: 60}) })
	w.every(7*time.Hour, func() { w.do(stimulus{What: "restart"}) })
	w.run(24*time.Hour, func() bool { return false })
	w.idle = true
	if err := w.settle(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d evaluations on %d pods", evaluations, len(pods))
	if evaluations < 5000 || len(pods) < 100 {
		t.Errorf("%d evaluations on %d pods are no day's work", evaluations, len(pods))
	}
}

// use has callers use a function: some every few seconds, some every few hours, in
// bursts, until the world is idle.
func (w *world) use(name string, rarity int) {
	f := pool.Function{Reference: name, Digest: "sha256:0"}
	n := 0
	var next func()
	next = func() {
		if w.idle {
			return
		}
		n++
		for i := range 1 + w.roll(4, "burst", name, n) {
			id := pool.LeaseID(w.roll(1<<40, "lease", name, n, i)) * maxCallerAttempts
			w.call(caller{
				id:       id,
				function: f,
				hold:     w.delay(20*time.Second, "hold", name, n, i),
				poison:   w.roll(100, "poison", name, n, i) == 0,
			})
		}
		w.after(w.delay(time.Duration(rarity*rarity)*2*time.Minute, "pause", name, n), next)
	}
	w.after(time.Duration(rarity)*time.Minute, next)
}
