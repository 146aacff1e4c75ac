// SPDX-License-Identifier: Apache-2.0

package pool_test

import "testing"

func TestAdoption(t *testing.T) {
	t.Parallel()
	three := func(p *player) { p.limits.MaxPods = 3 }
	play(t, []behaviour{
		{
			name: "running", reason: "a pod that is there serves, and no other is made",
			dialogue: `
				see f-1 running => probe f-1
				healthy f-1
				request 1 f => grant 1 f-1
			`,
		},
		{
			name: "not ready", reason: "a pod on its way is waited for",
			dialogue: `
				see f-1 pulling
				request 1 f
				see f-1 running => probe f-1
				healthy f-1 => grant 1 f-1 cold
			`,
		},
		{
			name: "dead", reason: "pods that were found dead go, and say nothing about whether another would start",
			dialogue: `
				see f-1 lost => delete f-1 failed
				see f-2 lost => delete f-2 failed
				see f-3 fatal => delete f-3 failed
				request 1 f => create f-4
			`,
		},
		{
			name:   "dying",
			reason: "their slots are taken until they are gone, and then their successors have new names", config: three,
			dialogue: `
				see f-1 running deleting
				see f-2 running deleting
				see f-3 running deleting
				request 1 f => create f-4
				gone f-1
				request 2 f
				request 3 f => create f-1'
			`,
		},
		{
			name:   "of another runner",
			reason: "its Service would lead to both, so its slot stays free until it is gone", config: three,
			dialogue: `
				foreign porch-1 f-1
				foreign porch-2 f-3
				foreign porch-1 f-1
				request 1 f => create f-2
				request 2 f
				request 3 f => create f-4
				gone porch-1
				request 4 f
				request 5 f => create f-1
			`,
		},
		{
			name: "long unused", reason: "a restart of the manager does not prolong the life of pods",
			dialogue: `
				see f-1 running reclaim=30s => probe f-1
				healthy f-1
				after 29s
				tick
				see g-1 running reclaim=-1h => probe g-1
				see h-1 pulling reclaim=-1h
				wait 60s => delete f-1 ttl; delete g-1 ttl; delete h-1 ttl
			`,
		},
		{
			name: "surplus", reason: "idle pods beyond the limit go with the scan, those in the highest slots first",
			dialogue: `
				see f-3 running => probe f-3
				see f-1 running => probe f-1
				see f-2 running => probe f-2
				healthy f-1
				healthy f-2
				healthy f-3
				after 2m
				request 1 f => extend f-1 to 12m0s; grant 1 f-1
				tick => delete f-2 surplus; delete f-3 surplus
			`,
		},
		{
			name: "surplus in use", reason: "pods in use beyond the limit finish what they have, and go",
			config: twoPods,
			dialogue: `
				request 1 f => create f-1
				request 2 f => create f-2
				request 3 f
				up f-1 => grant 1 f-1 cold; grant 2 f-1 cold
				up f-2 => grant 3 f-2 cold
				set pods=1
				tick
				request 4 f
				end 3 => delete f-2 surplus
				end 1 => grant 4 f-1
			`,
		},
		{
			name: "surplus that does not serve yet", reason: "a pod that serves is not given up for one that does not",
			config: twoPods,
			dialogue: `
				request 1 f => create f-1
				request 2 f => create f-2
				request 3 f
				up f-1 => grant 1 f-1 cold; grant 2 f-1 cold
				set pods=1
				tick
				up f-2 => grant 3 f-2 cold
				end 3
				wait 60s => extend f-1 to 11m0s; delete f-2 surplus
			`,
		},
		{
			name: "a wrong slot", reason: "a name is never given twice, whatever the labels of pods say", config: three,
			dialogue: `
				see f-1 running slot=3 => probe f-1
				request 1 f
				request 2 f
				request 3 f => create f-2
				gone f-1 => create f-1
				request 4 f
				request 5 f => create f-3'
			`,
		},
		{
			name:   "created by two",
			reason: "another replica's pod of the same name is this one's: it does not matter which was first",
			dialogue: `
				request 1 f => create f-1
				see f-1 running reclaim=1h => probe f-1
				healthy f-1 => grant 1 f-1 cold
				end 1
				wait 15m
			`,
		},
		{
			name:   "created by two, and another end",
			reason: "what is written down counts, and not what this replica would have written",
			dialogue: `
				request 1 f => create f-1
				see f-1 running reclaim=8m => probe f-1
				healthy f-1 => extend f-1 to 10m0s; grant 1 f-1 cold
			`,
		},
		{
			name: "came and went", reason: "a pod that was gone before it was seen gets a successor of another name",
			dialogue: `
				request 1 f => create f-1
				gone f-1 => create f-1
			`,
		},
		{
			name: "taken over", reason: "another pod of the same name ends what is known of the first",
			dialogue: `
				cold 1 f-1
				after 1s
				see f-1 running uid=other created=1s => probe f-1
				end 1 reset
				healthy f-1
				request 2 f => grant 2 f-1
			`,
		},
	})
}

// TestSharedID has images with equal names in two repositories: mirror/f is f, and its
// pods have the ids of f's, by which Services find them.
func TestSharedID(t *testing.T) {
	t.Parallel()
	play(t, []behaviour{
		{
			name: "a slot is taken", reason: "by another function's pod, until it is gone: its Service would reach both",
			dialogue: `
				request 1 f => create f-1
				request 2 mirror/f => create mirror/f-2
				up f-1 => grant 1 f-1 cold
				up mirror/f-2 => grant 2 mirror/f-2 cold
				end 1
				see f-1 running deleting
				end 2
				gone mirror/f-2
				request 3 mirror/f => create mirror/f-2'
				end 3
				gone mirror/f-2'
				gone f-1
				request 4 mirror/f => create mirror/f-1
			`,
		},
	})
}
