// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/lease"
)

// BenchmarkAdoption has three replicas start where 10,000 pods of 1,000 functions run. It measures the
// time until each of them could grant a lease on each pod, and what they take of memory together.
func BenchmarkAdoption(b *testing.B) {
	const functions, podsOfEach = 1000, 10
	s := usual()
	s.Replicas = 1
	s.Startup = 0
	s.Scan = 10 * time.Minute
	s.Limits.MaxPods = podsOfEach
	s.Limits.MaxWaitlistLength = 1
	s.Limits.TTL = time.Hour
	s.Limits.MaxConcurrency = 1
	s.Limits.ReadyTimeout = 10 * time.Minute
	w := newWorld(b, s)
	defer w.end()
	first := w.replicas[0]
	for n := range functions {
		start(b, first, image(n), podsOfEach)
	}
	await(b, first, functions*podsOfEach)
	first.leave()
	for b.Loop() {
		before := heap()
		begin := time.Now()
		replicas := []*replica{w.add(), w.add(), w.add()}
		for _, r := range replicas {
			await(b, r, functions*podsOfEach)
		}
		b.ReportMetric(time.Since(begin).Seconds(), "s/adoption")
		b.ReportMetric(float64(heap()-before)/(1<<20), "MiB/3-replicas")
		for _, r := range replicas {
			r.leave()
		}
	}
}

// start has a function get pods: leases at one time take one each.
func start(b *testing.B, r *replica, image string, pods int) {
	b.Helper()
	held := make(chan lease.Lease, pods)
	var callers sync.WaitGroup
	for range pods {
		callers.Go(func() {
			granted, err := r.Lease(b.Context(), &lease.Open{Image: image}, func(*lease.Waiting) {})
			if err != nil {
				b.Error(err)
				return
			}
			held <- granted
		})
	}
	callers.Wait()
	close(held)
	for granted := range held {
		granted.Finish(lease.Done, "")
	}
	if b.Failed() {
		b.FailNow()
	}
}

// await waits until a replica has so many pods that are ready.
func await(b *testing.B, r *replica, pods int) {
	b.Helper()
	for {
		resp, err := r.ListPools(b.Context(), &podmanagerv1.ListPoolsRequest{})
		if err != nil {
			b.Fatal(err)
		}
		ready := 0
		for _, p := range resp.GetPools() {
			for _, pod := range p.GetPods() {
				if pod.GetState() == podmanagerv1.Pod_STATE_READY {
					ready++
				}
			}
		}
		if ready >= pods {
			return
		}
		wait(50 * time.Millisecond)
	}
}

// heap returns how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what finalizers freed
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}
