// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// BenchmarkWarmLease measures what a lease on a warm pod costs the machine: 1,000
// pools of four pods each, used one after the other.
func BenchmarkWarmLease(b *testing.B) {
	const functions, pods = 1000, 4
	p := newPlayer(behaviour{config: func(p *player) { p.limits.MaxPods = pods }})
	m := pool.New(p.configured())
	all := make([]pool.Function, functions)
	for i := range all {
		all[i] = function("f" + strconv.Itoa(i))
		for slot := 1; slot <= pods; slot++ {
			name := playName(all[i], slot, "")
			actions := m.Handle(start, pool.PodObserved{Observation: pool.Observation{
				Name: name, UID: name, Function: all[i], Slot: slot, TemplateVersion: "v1", ReclaimAfter: start.Add(time.Hour),
				Phase: pool.PhaseConnecting, Address: "10.0.0.1:9446",
			}})
			m.Handle(start, pool.Probed{Name: name, UID: name, Question: actions[0].(pool.Probe).Question})
		}
	}
	b.ReportAllocs()
	lease := pool.LeaseID(0)
	for b.Loop() {
		lease++
		actions := m.Handle(start, pool.LeaseRequested{Lease: lease, Function: all[int(lease)%functions]})
		if _, granted := actions[0].(pool.Grant); len(actions) != 1 || !granted {
			b.Fatalf("actions are %+v, want a grant", actions)
		}
		m.Handle(start, pool.LeaseEnded{Lease: lease})
	}
}
