// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"testing"
	"time"
)

// noCapacity is why a lease is rejected that waited for the whole ReadyTimeout of a minute.
const noCapacity = "no capacity for a pod of g within 1m0s: there are 1 function pods, which is the limit, and all " +
	"are in use"

// noRoom is why a lease is rejected that waited for as long while a quota is reached.
const noRoom = "no capacity for a pod of g within 25s: Kubernetes has no room for a further function pod: " +
	"exceeded quota"

func TestPodLimit(t *testing.T) {
	t.Parallel()
	two := func(p *player) { p.config.MaxPods = 2; p.limits.MaxPods, p.limits.MaxWaitlistLength = 2, 1 }
	play(t, []behaviour{
		{
			name: "an idle pod goes", reason: "the one unused for longest is evicted for a waiting lease", config: two,
			dialogue: `
				request 1 f => create f-1
				up f-1 => grant 1 f-1 cold
				end 1
				request 2 g => create g-1
				up g-1 => grant 2 g-1 cold
				end 2
				request 3 h => delete f-1 capacity
				gone f-1 => create h-1
			`,
		},
		{
			name:   "none goes",
			reason: "Kubernetes does not end the pod that is to go: callers are told after as long as a pod may take",
			config: func(p *player) { p.config.MaxPods, p.limits.ReadyTimeout = 1, time.Minute },
			dialogue: `
				request 1 f => create f-1
				up f-1 => grant 1 f-1 cold
				end 1
				request 2 g => delete f-1 capacity
				wait 30s
				request 3 g
				wait 29s
				wait 1s => reject 2 exhausted retry in 1s: ` + noCapacity + `
				wait 20s
				gone f-1 => create g-1
				up g-1 => grant 3 g-1 cold
			`,
		},
		{
			name: "a quota is reached", reason: "the pod idle for longest makes way, as at the own limit",
			dialogue: `
				request 1 f => create f-1
				up f-1 => grant 1 f-1 cold
				end 1
				request 2 g => create g-1
				createfailed g-1 full exceeded quota => delete f-1 capacity
				request 3 h
				gone f-1 => create g-1; create h-1
				createfailed h-1 full exceeded quota
				up g-1 => grant 2 g-1 cold
				end 2
				wait 1s => delete g-1 capacity
				gone g-1 => create h-1
			`,
		},
		{
			name: "a quota, and all are in use", reason: "callers wait for as long as a pod may take, and are told why",
			config: func(p *player) { p.limits.ReadyTimeout = 25 * time.Second },
			dialogue: `
				request 1 f => create f-1
				up f-1 => grant 1 f-1 cold
				request 2 g => create g-1
				createfailed g-1 full exceeded quota
				wait 10s => create g-1
				createfailed g-1 full exceeded quota
				wait 10s => create g-1
				createfailed g-1 full exceeded quota
				wait 5s => reject 2 exhausted retry in 1s: ` + noRoom + `
			`,
		},
		{
			name:   "who has none comes first",
			reason: "a further pod for a pool that has one waits until each has one", config: two,
			dialogue: `
				request 1 f => create f-1
				request 2 g => create g-1
				up f-1 => grant 1 f-1 cold
				request 3 f => grant 3 f-1
				request 4 f
				request 5 h
				see g-1 fatal => reject 2 precondition retry in 1s: the kubelet says fatal; delete g-1 failed
				gone g-1 => create h-1
			`,
		},
		{
			name: "no way past the line", reason: "the pool that gave up a pod does not take the capacity itself", config: two,
			dialogue: `
				request 1 f => create f-1
				request 2 f => create f-2
				up f-1 => grant 1 f-1 cold; grant 2 f-1 cold
				up f-2
				request 3 g => delete f-2 capacity
				request 4 f
				request 5 f
				gone f-2 => create g-1
			`,
		},
		{
			name: "another replica has not used one", reason: "its end says that it is unused for longest", config: two,
			dialogue: `
				see g-1 running => probe g-1
				healthy g-1
				after 94s
				request 1 f => create f-1
				up f-1 => grant 1 f-1 cold
				after 1s
				end 1
				request 2 h => delete g-1 capacity
			`,
		},
		{
			name: "other replicas used both", reason: "what they say counts among their pods too", config: two,
			dialogue: `
				see f-1 running reclaim=7m => probe f-1
				healthy f-1
				see g-1 running reclaim=6m => probe g-1
				healthy g-1
				request 1 h => delete g-1 capacity
			`,
		},
		{
			name: "a minimum takes nothing", reason: "an idle pod is worth as much as one of the minimum", config: two,
			dialogue: `
				minimum f 1 => create f-1
				minimum g 1 => create g-1
				up f-1
				up g-1
				minimum f 0
				minimum h 1
				wait 60s => extend g-1 to 11m0s
				gone f-1
				tick => create h-1
			`,
		},
		{
			name:   "one that never goes",
			reason: "a pod on a node that is gone keeps its capacity, and not that of others", config: two,
			dialogue: `
				see f-1 running deleting
				request 1 g => create g-1
				up g-1 => grant 1 g-1 cold
				end 1
				request 2 h
				wait 119s
				wait 1s => delete f-1; delete g-1 capacity
			`,
		},
		{
			name: "limit raised", reason: "a pool that waits for capacity gets it at once", config: two,
			dialogue: `
				request 1 f => create f-1
				request 2 g => create g-1
				request 3 h
				set all=3 => create h-1
			`,
		},
		{
			name: "limit lifted", reason: "zero is no limit", config: two,
			dialogue: `
				request 1 f => create f-1
				request 2 g => create g-1
				request 3 h
				request 4 i
				set all=0 => create h-1; create i-1
			`,
		},
		{
			name: "limit lowered", reason: "pods in use stay, and none is created", config: two,
			dialogue: `
				request 1 f => create f-1
				request 2 g => create g-1
				set all=1
				see g-1 pulling
				up f-1 => grant 1 f-1 cold
				gone g-1
				end 1
				tick => delete f-1 capacity
				gone f-1 => create g-1'
			`,
		},
		{
			name:   "limit lowered by far",
			reason: "as many pods go as there are too many, at once, and one more for the next request", config: two,
			dialogue: `
				set all=3
				see a-1 running => probe a-1
				healthy a-1
				see b-1 running => probe b-1
				healthy b-1
				see c-1 running => probe c-1
				healthy c-1
				after 2m
				set all=2 => delete a-1 capacity
				request 1 h => delete b-1 capacity
				gone a-1
				gone b-1 => create h-1
			`,
		},
		{
			name: "callers leave the line", reason: "no pod is evicted for leases that do not wait any more", config: two,
			dialogue: `
				request 1 f => create f-1
				request 2 g => create g-1
				up f-1 => grant 1 f-1 cold
				request 3 h
				end 3
				end 1
				wait 30s
			`,
		},
		{
			name: "no limit of zero", reason: "no pods at all, no waitlist or no concurrency would have callers wait for ever",
			config: func(p *player) { p.limits.MaxPods, p.limits.MaxWaitlistLength, p.limits.MaxConcurrency = 0, 0, 0 },
			dialogue: `
				request 1 f => create f-1
			`,
		},
	})
}
