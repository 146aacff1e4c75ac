// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// TestTwoVersions has a replica with another template join one that runs, for as long as
// a rollout may hang. They share what there is: each function gets one new pod at most.
// When the template changes for both, though not at the same time, the old pods go.
func TestTwoVersions(t *testing.T) {
	t.Parallel()
	const functions = 4
	tests := map[string]struct {
		reason string
		// asks reports whether callers of a function may come to a replica.
		asks func(i, n int) bool
		// members reports whether the replicas agree on who owns which function.
		members bool
		// joined is how many pods of each function may be made once the other one joins,
		// and changed how many once the template changes.
		joined, changed int
	}{
		"shared": {"callers come to either of them", func(int, int) bool { return true }, false, 1, 1},
		"owned":  {"each of them has functions of its own", func(i, n int) bool { return n%2 == i }, false, 1, 1},
		"left":   {"no caller comes to the new one", func(i, _ int) bool { return i == 0 }, false, 1, 1},
		"member": {"the new one owns some functions", func(i, n int) bool { return n%2 == i }, true, 1, 1},
	}
	for name, test := range tests {
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) {
				t.Parallel()
				s := setup{
					Limits: pool.Limits{
						MaxPods: 1, MaxWaitlistLength: 4, MaxConcurrency: 100, MaxQueue: 100,
						TTL: 10 * time.Minute, ReadyTimeout: time.Minute,
					},
					SchedulingTimeout: time.Minute, Scan: time.Minute, Template: "v1",
				}
				r := newReplicas(seed, s)
				r.both[1] = nil
				ask := func(i int) {
					if n := r.IntN(functions); r.IntN(6) == 0 && (test.asks(i, n) || r.both[1] == nil) {
						r.ask(i, n)
					}
				}
				pass := func(d time.Duration, limit int, phase string) {
					t.Helper()
					clear(r.created)
					if err := r.run(d, ask); err != nil {
						t.Fatalf("%s, after %s: %v", phase, r.now.Sub(start), err)
					}
					for f, n := range r.created {
						if n > limit {
							t.Errorf("%s: %d pods of %s were made, want at most %d: %s", phase, n, f, limit, test.reason)
						}
					}
				}
				pass(10*time.Minute, 1, "alone")
				r.join("v2", s)
				if test.members {
					r.divide()
				}
				pass(time.Hour, test.joined, "together")
				r.change(0, "v3", s)
				clear(r.created)
				pass(40*time.Second, test.changed, "one of them changed")
				r.change(1, "v3", s)
				pass(20*time.Minute, test.changed, "both changed")
				for _, p := range r.pods {
					if p.TemplateVersion != "v3" {
						t.Errorf("pod %s is still there, of %s", p.Name, p.TemplateVersion)
					}
				}
				if len(r.pods) != functions {
					t.Errorf("there are %d pods, want one of each function", len(r.pods))
				}
			})
		}
	}
}

// join has the second replica begin, with a template of its own.
func (r *replicas) join(template string, s setup) {
	s.Template = template
	r.both[1] = newReferee(s.config())
	r.versions[1] = template
	for _, p := range r.pods {
		r.send(1, pool.PodObserved{Observation: p.Observation})
	}
}

// divide has each replica own every second function.
func (r *replicas) divide() {
	for i := range r.both {
		r.send(i, pool.OwnersChanged{Replicas: 2, Owner: func(f pool.Function) pool.Owner {
			return pool.Owner{Mine: int(f.Reference[0]-'e')%2 == i, Address: "10.0.0.2:9448"}
		}})
	}
}

// change has a replica learn of another template.
func (r *replicas) change(i int, template string, s setup) {
	s.Template = template
	r.versions[i] = template
	r.send(i, pool.Configured{Config: s.config()})
}
