// SPDX-License-Identifier: Apache-2.0

package pool_test

import "testing"

func TestChoice(t *testing.T) {
	t.Parallel()
	wide := func(p *player) {
		p.limits.MaxPods = 3
		p.limits.MaxConcurrency = 4
	}
	play(t, []behaviour{
		{
			name: "one caller", reason: "a cold start takes one pod, and its caller gets it",
			dialogue: `
				request 1 f => create f-1
				see f-1 scheduling
				see f-1 running => probe f-1
				healthy f-1 => grant 1 f-1 cold
				end 1
				request 2 f => grant 2 f-1
			`,
		},
		{
			name: "a burst", reason: "a pod for each two callers, up to the limit, all at once", config: wide,
			dialogue: `
				request 1 f => create f-1
				request 2 f
				request 3 f => create f-2
				request 4 f
				request 5 f => create f-3
				request 6 f
				request 7 f
			`,
		},
		{
			name:   "scale up under load",
			reason: "callers who are served count too: the third one on a pod starts another", config: wide,
			dialogue: `
				cold 1 f-1
				request 2 f => grant 2 f-1
				request 3 f => grant 3 f-1; create f-2
			`,
		},
		{
			name: "least loaded, then in turn", reason: "load is spread evenly, and the pod used longest ago comes first",
			config: func(p *player) {
				p.limits.MaxPods = 2
				p.limits.MaxConcurrency = 4
			},
			dialogue: `
				request 1 f => create f-1
				request 2 f
				request 3 f => create f-2
				up f-1 => grant 1 f-1 cold; grant 2 f-1 cold; grant 3 f-1 cold
				up f-2
				request 4 f => grant 4 f-2
				request 5 f => grant 5 f-2
				end 1
				end 2
				end 3
				end 4
				end 5
				request 6 f => grant 6 f-1
				end 6
				request 7 f => grant 7 f-2
				end 7
				request 8 f => grant 8 f-1
			`,
		},
		{
			name:   "first come, first served",
			reason: "leases are granted in the order of the requests, whichever callers give up",
			dialogue: `
				request 1 f => create f-1
				request 2 f
				request 3 f
				request 4 f
				request 5 f
				up f-1 => grant 1 f-1 cold; grant 2 f-1 cold
				end 4
				end 2 => grant 3 f-1 cold
				request 6 f
				end 1 => grant 5 f-1 cold
				end 3 => grant 6 f-1
			`,
		},
		{
			name: "avoid", reason: "a pod that failed the caller is taken only if there is no other", config: wide,
			dialogue: `
				request 1 f => create f-1
				request 2 f
				request 3 f => create f-2
				up f-1 => grant 1 f-1 cold; grant 2 f-1 cold; grant 3 f-1 cold
				up f-2
				end 1
				end 2
				end 3
				request 4 f f-1 => probe f-1 for 3s; grant 4 f-2
				request 5 f f-1 => grant 5 f-2
				request 6 f f-1,f-2 => probe f-2 for 3s
				healthy f-2 => grant 6 f-2
			`,
		},
		{
			name: "avoid the only one", reason: "better a pod that failed before than none, if it is well",
			dialogue: `
				cold 1 f-1
				end 1 broken => probe f-1 for 3s
				request 2 f f-1
				healthy f-1 => grant 2 f-1
			`,
		},
		{
			name: "avoid the only one before it is reported",
			reason: "a caller who comes again is often faster than its report: " +
				"the pod that it lost does not cost it another try",
			dialogue: `
				cold 1 f-1
				request 2 f f-1 => probe f-1 for 3s
				end 1 broken
				unhealthy f-1 => create f-2; delete f-1 failed
				up f-2 => grant 2 f-2 cold
			`,
		},
		{
			name: "broken again and again, and reported late", reason: "each report counts once",
			dialogue: `
				cold 1 f-1
				request 2 f f-1 => probe f-1 for 3s
				end 1 broken
				healthy f-1 => grant 2 f-1
				request 3 f f-1 => probe f-1 for 3s
				end 2 broken
				healthy f-1 => grant 3 f-1
				request 4 f f-1 => probe f-1 for 3s
				end 3 broken => create f-2; delete f-1 failed
			`,
		},
		{
			name: "found running", reason: "no caller waited for this pod to be created: it was only asked for its health",
			dialogue: `
				see f-1 running => probe f-1
				request 1 f
				healthy f-1 => grant 1 f-1
			`,
		},
		{
			name: "ready before Kubernetes says so", reason: "a pod with an address is asked at once, and where it says to ask",
			dialogue: `
				request 1 f => create f-1
				see f-1 pulling address=f-1:9446 health=10.0.0.7:9446 => probe f-1 at 10.0.0.7:9446
				healthy f-1 => grant 1 f-1 cold
				see f-1 starting address=f-1:9446
				see f-1 running
				request 2 f => grant 2 f-1
			`,
		},
		{
			name: "answers that come twice", reason: "each event may be repeated, and changes nothing then",
			dialogue: `
				request 1 f => create f-1
				see f-1 running => probe f-1
				see f-1 running
				healthy f-1 => grant 1 f-1 cold
				healthy f-1
				end 1
				end 1
				gone f-1
				see f-1 running
				gone f-1
				see f-1 running
				request 2 f => create f-1'
			`,
		},
		{
			name: "older than what is known", reason: "what a creation returned may be told after what the watch saw since",
			dialogue: `
				request 1 f => create f-1
				see f-1 running version=3 => probe f-1
				see f-1 scheduling version=1
				see f-1 starting version=3
				healthy f-1 => grant 1 f-1 cold
				see f-1 starting version=1
				request 2 f => grant 2 f-1
				see f-1 starting version=4
				request 3 f
			`,
		},
		{
			name:   "late news",
			reason: "events about a pod that is gone, or about another one of its name, say nothing about this one",
			dialogue: `
				cold 1 f-1
				see f-1 running uid=old created=-1h
				request 2 f => grant 2 f-1
			`,
		},
	})
}

func TestQueue(t *testing.T) {
	t.Parallel()
	play(t, []behaviour{
		{
			name: "full", reason: "callers beyond the bound are rejected, but none that gets a lease at once",
			config: func(p *player) { p.limits.MaxQueue = 2 },
			dialogue: `
				request 1 f => create f-1
				request 2 f
				request 3 f => reject 3 exhausted retry in 1s: 2 evaluations wait for f already, which is the limit
				up f-1 => grant 1 f-1 cold; grant 2 f-1 cold
				request 4 f
				request 5 f
				request 6 f => reject 6 exhausted retry in 1s: 2 evaluations wait for f already, which is the limit
				end 1 => grant 4 f-1
				request 7 f
			`,
		},
		{
			name: "no queue", reason: "without one there are only pods that are free",
			config: func(p *player) { p.limits.MaxQueue = 0 },
			dialogue: `
				request 1 f => reject 1 exhausted retry in 1s: 0 evaluations wait for f already, which is the limit
				see f-1 running => probe f-1
				healthy f-1
				request 2 f => grant 2 f-1
			`,
		},
		{
			name: "the caller gives up", reason: "a pod that was asked for is kept for the next one; nothing leaks",
			dialogue: `
				request 1 f => create f-1
				end 1
				up f-1
				request 2 f => grant 2 f-1
				end 2
				wait 12m => delete f-1 ttl
			`,
		},
	})
}
