// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"testing"
	"time"
)

// noRoom is why leases wait while a quota is reached and no pod is idle.
const noRoom = "Kubernetes has no room for a further function pod, and all are in use: exceeded quota"

func TestQuota(t *testing.T) {
	t.Parallel()
	soon := func(p *player) { p.limits.ReadyTimeout = 25 * time.Second }
	play(t, []behaviour{
		{
			name: "an idle pod goes", reason: "the one unused for longest is evicted for a waiting lease",
			dialogue: `
				idle 1 f-1
				idle 2 g-1
				request 3 h => create h-1
				createfailed h-1 full exceeded quota => delete f-1 capacity
				gone f-1 => create h-1
			`,
		},
		{
			name: "one for each", reason: "as many go as the line needs, and one that becomes idle goes a second later",
			dialogue: `
				idle 1 f-1
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
			name: "all are in use", reason: "callers wait for as long as a pod may take, and are told why", config: soon,
			dialogue: `
				cold 1 f-1
				request 2 g => create g-1
				createfailed g-1 full exceeded quota
				wait 10s => create g-1
				createfailed g-1 full exceeded quota
				wait 10s => create g-1
				createfailed g-1 full exceeded quota
				wait 5s => reject 2 exhausted retry in 1s: no capacity for a pod of g within 25s: ` + noRoom + `
			`,
		},
		{
			name:   "who has none comes first",
			reason: "a further pod for a pool that has one waits until each has one", config: twoPods,
			dialogue: `
				cold 1 f-1
				request 2 f => grant 2 f-1; create f-2
				createfailed f-2 full exceeded quota
				request 3 f
				request 4 g
				wait 10s => create g-1; create f-2
			`,
		},
		{
			name: "another replica has not used one", reason: "its expiry shows that it has been unused for longest",
			dialogue: `
				see g-1 running => probe g-1
				healthy g-1
				after 94s
				cold 1 f-1
				after 1s
				end 1
				request 2 h => create h-1
				createfailed h-1 full exceeded quota => delete g-1 capacity
			`,
		},
		{
			name: "other replicas used both", reason: "the expiries that they wrote count among their pods too",
			dialogue: `
				see f-1 running reclaim=7m => probe f-1
				healthy f-1
				see g-1 running reclaim=6m => probe g-1
				healthy g-1
				request 1 h => create h-1
				createfailed h-1 full exceeded quota => delete g-1 capacity
			`,
		},
		{
			name: "a minimum takes nothing", reason: "an idle pod is worth as much as one of the minimum",
			dialogue: `
				minimum f 1 => create f-1
				up f-1
				minimum g 1 => create g-1
				createfailed g-1 full exceeded quota
				wait 11s => create g-1
			`,
		},
		{
			name: "one that never goes", reason: "a pod on a node that is gone does not keep another one from making way",
			dialogue: `
				idle 1 g-1
				see f-1 running deleting
				request 2 h => create h-1
				createfailed h-1 full exceeded quota
				wait 9s
				wait 1s => create h-1
				createfailed h-1 full exceeded quota
				wait 10s => create h-1
				wait 99s
				createfailed h-1 full exceeded quota
				wait 1s => delete g-1 capacity; delete f-1
			`,
		},
		{
			name: "callers leave the line", reason: "no pod is evicted for leases that no longer wait",
			dialogue: `
				cold 1 f-1
				request 2 g => create g-1
				createfailed g-1 full exceeded quota
				end 2
				end 1
				wait 30s
			`,
		},
	})
}

func TestLimitsOfZero(t *testing.T) {
	t.Parallel()
	play(t, []behaviour{{
		name: "one of each", reason: "no pods at all, no waitlist or no concurrency would have callers wait for ever",
		config: func(p *player) { p.limits.MaxPods, p.limits.MaxWaitlistLength, p.limits.MaxConcurrency = 0, 0, 0 },
		dialogue: `
			request 1 f => create f-1
		`,
	}})
}
