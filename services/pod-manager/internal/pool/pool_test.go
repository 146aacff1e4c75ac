// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

var (
	start = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	fn    = pool.Function{Reference: "example.com/fns/set:v1", Digest: "sha256:0123"}
)

// config is a configuration in which one pod serves four.
func config() pool.Config {
	return pool.Config{
		Limits: func(pool.Function) pool.Limits {
			return pool.Limits{
				MaxPods: 1, MaxWaitlistLength: 2, MaxConcurrency: 4, MaxQueue: 100,
				TTL: 30 * time.Minute, ReadyTimeout: 5 * time.Minute,
			}
		},
		ScanInterval: time.Minute,
		PodName: func(f pool.Function, slot int, predecessor string) string {
			return f.Reference + string(rune('0'+slot)) + predecessor
		},
		PodID: func(f pool.Function, slot int) string { return f.Reference + string(rune('0'+slot)) },
	}
}

// running is what is seen of a pod whose containers run.
func running(c pool.Create, uid string) pool.PodObserved {
	return pool.PodObserved{Observation: pool.Observation{
		Name: c.Name, UID: uid, ResourceVersion: "1", Function: c.Function, Slot: c.Slot,
		ReclaimAfter: c.ReclaimAfter, Phase: pool.PhaseConnecting, Address: "10.0.0.1:9446",
	}}
}

func TestColdStart(t *testing.T) {
	m := pool.New(config())
	now := start
	actions := m.Handle(now, pool.LeaseRequested{Lease: 1, Function: fn})
	create, ok := actions[0].(pool.Create)
	if !ok || len(actions) != 2 {
		t.Fatalf("actions are %+v, want a pod and a report", actions)
	}
	now = now.Add(time.Second)
	actions = m.Handle(now, running(create, "uid-1"))
	want := []pool.Action{
		pool.Report{Lease: 1, Waiting: pool.Waiting{
			Phase: pool.PhaseConnecting, Reason: "making pod " + create.Name + " ready", Position: 1, Pod: create.Name,
		}},
	}
	if diff := cmp.Diff(want, actions[1:]); diff != "" {
		t.Errorf("once its containers run (-want +got):\n%s", diff)
	}
	now = now.Add(100 * time.Millisecond)
	actions = m.Handle(now, pool.Probed{Name: create.Name, UID: "uid-1", Question: actions[0].(pool.Probe).Question})
	want = []pool.Action{pool.Grant{
		Lease: 1, Function: fn, Pod: create.Name, UID: "uid-1", Address: "10.0.0.1:9446", Cold: true,
		Phases: []pool.PhaseDuration{
			{Phase: pool.PhaseCreating, Duration: time.Second},
			{Phase: pool.PhaseConnecting, Duration: 100 * time.Millisecond},
		},
	}}
	if diff := cmp.Diff(want, actions); diff != "" {
		t.Errorf("once it answers (-want +got):\n%s", diff)
	}
}
