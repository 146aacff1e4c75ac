// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// What docs/scale.md counts on.
const (
	manyFunctions = 1000
	podsOfEach    = 10
)

// observed is a pod as Kubernetes reports it, ready to be asked.
func observed(name string, f pool.Function, slot int, now time.Time) pool.PodObserved {
	return pool.PodObserved{Observation: pool.Observation{
		Name: name, UID: name, Function: f, Slot: slot, TemplateVersion: "v1", Created: now,
		ReclaimAfter: now.Add(time.Hour), Phase: pool.PhaseConnecting, Address: "10.0.0.1:9446", Ready: true,
	}}
}

// large returns a machine with 10,000 pods that serve.
func large() *pool.Machine {
	p := newPlayer(behaviour{config: func(p *player) { p.limits.MaxPods = podsOfEach }})
	config, pods := p.configured(), 0
	config.PodName = func(pool.Function, int, string) string { // of a length that does not grow
		pods++
		return "new-" + strconv.Itoa(pods)
	}
	m := pool.New(config)
	for n := range manyFunctions {
		f := function("f" + strconv.Itoa(n))
		for slot := 1; slot <= podsOfEach; slot++ {
			answerAll(m, start, m.Handle(start, observed(playName(f, slot, ""), f, slot, start)))
		}
	}
	return m
}

// answerAll has pods answer the questions among actions, and returns what follows.
func answerAll(m *pool.Machine, now time.Time, actions []pool.Action) (after []pool.Action) {
	for _, a := range actions {
		if probe, ok := a.(pool.Probe); ok {
			after = append(after, m.Handle(now, pool.Probed{Name: probe.Name, UID: probe.UID, Question: probe.Question})...)
		}
	}
	return after
}

// BenchmarkColdStartAmongMany measures what the machine takes for a pod, from the request to its
// end, among 10,000 others.
func BenchmarkColdStartAmongMany(b *testing.B) {
	m, f := large(), function("new")
	b.ReportAllocs()
	for n := pool.LeaseID(1); b.Loop(); n++ {
		create, ok := m.Handle(start, pool.LeaseRequested{Lease: n, Function: f})[0].(pool.Create)
		if !ok {
			b.Fatal("no pod is created")
		}
		granted := answerAll(m, start, m.Handle(start, observed(create.Name, f, create.Slot, start)))
		if _, ok := granted[len(granted)-1].(pool.Grant); !ok {
			b.Fatalf("the lease is not granted: %+v", granted)
		}
		m.Handle(start, pool.LeaseEnded{Lease: n})
		m.Handle(start, pool.PodGone{Name: create.Name, UID: create.Name})
	}
}

// BenchmarkTickOfMany measures a tick, which comes each second, with 10,000 pods.
func BenchmarkTickOfMany(b *testing.B) {
	m, now := large(), start
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Second)
		m.Handle(now, pool.Tick{})
		now = now.Add(-time.Second)
	}
}

// BenchmarkCountOfMany measures what metrics of 10,000 pods take, and the memory of these.
func BenchmarkCountOfMany(b *testing.B) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	m := large()
	runtime.GC()
	runtime.ReadMemStats(&after)
	defer func() { b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/manyFunctions/podsOfEach, "B/pod") }()
	b.ReportAllocs()
	for b.Loop() {
		pods := 0
		for _, n := range m.Counts().Pods {
			pods += n
		}
		if pods != manyFunctions*podsOfEach {
			b.Fatalf("%d pods are counted", pods)
		}
	}
}

// BenchmarkTakeoverOfMany measures what a replica takes that becomes the owner of 1,000 functions
// with 10,000 pods.
func BenchmarkTakeoverOfMany(b *testing.B) {
	m := large()
	for b.Loop() {
		for _, mine := range []bool{false, true} {
			owner := pool.Owner{Mine: mine, Address: "10.0.0.2:9448"}
			actions := m.Handle(start, pool.OwnersChanged{Owner: func(pool.Function) pool.Owner { return owner }, Replicas: 2})
			answerAll(m, start, actions)
		}
	}
}
