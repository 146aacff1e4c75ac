// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"testing"
	"time"
)

// noCapacity is why a lease is rejected that waited for the whole ReadyTimeout of a minute.
const noCapacity = "the limit of 1 function pods is reached, and there was no capacity for g within 1m0s"

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
				request 3 h => delete f-1 version 1 room
				gone f-1 => create h-1
			`,
		},
		{
			name:   "one of many goes",
			reason: "a pool without a pod gets one of the pool that has the most, after what runs there",
			config: two,
			dialogue: `
				request 1 f => create f-1
				request 2 f => create f-2
				up f-1 => grant 1 f-1 cold; grant 2 f-1 cold
				up f-2
				request 3 f => grant 3 f-2
				request 4 f => grant 4 f-2
				request 5 g
				request 6 f
				end 1
				end 2 => delete f-1 version 1 room
				gone f-1 => create g-1
				end 3 => grant 6 f-2
			`,
		},
		{
			name:   "the only ones, in use",
			reason: "after ten seconds one of them goes, once what runs there is over", config: two,
			dialogue: `
				request 1 f => create f-1
				request 2 g => create g-1
				up f-1 => grant 1 f-1 cold
				up g-1 => grant 2 g-1 cold
				request 3 h
				wait 9s
				request 4 f => grant 4 f-1
				wait 1s
				request 5 f
				request 6 g
				end 2 => delete g-1 version 1 room
				gone g-1 => create h-1
				up h-1 => grant 3 h-1 cold
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
				request 2 g => delete f-1 version 1 room
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
			name: "a turn lasts ten seconds", reason: "functions that share capacity do something with their turn",
			config: func(p *player) { p.config.MaxPods = 1 },
			dialogue: `
				request 1 f => create f-1
				up f-1 => grant 1 f-1 cold
				request 2 g
				wait 10s
				request 3 f
				end 1 => delete f-1 version 1 room
				wait 20s
				gone f-1 => create g-1
				up g-1 => grant 2 g-1 cold
				end 2
				request 4 g => grant 4 g-1
				wait 9s
				request 5 g => grant 5 g-1
				wait 1s
				request 6 g
				end 4
				end 5 => delete g-1 version 1 room
				gone g-1 => create f-1'
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
				see g-1 fatal => reject 2 precondition retry in 1s: the kubelet says fatal; delete g-1 any version failed
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
				request 3 g => delete f-2 version 1 room
				request 4 f
				request 5 f
				gone f-2 => create g-1
			`,
		},
		{
			name:   "another replica uses one",
			reason: "its end was put off lately, so the one goes that is idle here, although it was used later",
			config: two,
			dialogue: `
				see g-1 running => probe g-1
				healthy g-1
				request 1 f => create f-1
				after 30s
				up f-1 => grant 1 f-1 cold
				end 1
				request 2 h => delete f-1 version 1 room
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
				request 2 h => delete g-1 version 1 room
			`,
		},
		{
			name: "other replicas used both", reason: "what they say counts among their pods too", config: two,
			dialogue: `
				see f-1 running reclaim=7m => probe f-1
				healthy f-1
				see g-1 running reclaim=6m => probe g-1
				healthy g-1
				request 1 h => delete g-1 version 1 room
			`,
		},
		{
			name:   "another replica uses one, and here one is in use",
			reason: "each replica gives up its own: none ends what only the other knows to be used",
			config: two,
			dialogue: `
				see g-1 running => probe g-1
				healthy g-1
				request 1 f => create f-1
				up f-1 => grant 1 f-1 cold
				request 2 h
				wait 10s
				end 1 => delete f-1 version 1 room
			`,
		},
		{
			name:   "other replicas use both",
			reason: "a function without a pod gets one after ten seconds all the same", config: two,
			dialogue: `
				see f-1 running => probe f-1
				healthy f-1
				see g-1 running => probe g-1
				healthy g-1
				request 1 h
				wait 9s
				wait 1s => delete f-1 version 1 room
			`,
		},
		{
			name: "another replica uses it meanwhile", reason: "it is not idle any more, so another one goes", config: two,
			dialogue: `
				see f-1 running reclaim=6m => probe f-1
				healthy f-1
				see g-1 running reclaim=7m => probe g-1
				healthy g-1
				request 1 h => delete f-1 version 1 room
				deletefailed f-1
				see f-1 running reclaim=10m
				wait 1s => probe f-1; delete g-1 version 1 room
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
				wait 1s => delete f-1 any version; delete g-1 version 1 room
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
				tick => delete f-1 version 1 room
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
				set all=2 => delete a-1 version 1 room
				request 1 h => delete b-1 version 1 room
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
