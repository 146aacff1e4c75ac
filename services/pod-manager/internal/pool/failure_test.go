// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"testing"
	"time"
)

// threeServe has three pods, each with capacity for one lease.
func threeServe(p *player) {
	p.limits.MaxPods = 3
	p.limits.MaxWaitlistLength = 1
	p.limits.MaxConcurrency = 1
}

// threeServed begins a dialogue with three pods, of which the first broke under lease 1.
const threeServed = `
	request 1 f => create f-1
	request 2 f => create f-2
	request 3 f => create f-3
	up f-1 => grant 1 f-1 cold
	up f-2 => grant 2 f-2 cold
	up f-3 => grant 3 f-3 cold
	end 2
	end 3
	end 1 broken => probe f-1 for 3s
`

// secondChecked goes on: the first ran out of memory, the second broke under lease 4, and
// its caller waits for what is said of that one.
const secondChecked = threeServed + `
	request 4 f f-1 => grant 4 f-2
	see f-1 starved => delete f-1 failed
	end 4 broken => probe f-2 for 3s
	request 5 f f-1,f-2
`

// outOfMemory is why an evaluation under which f-1 and f-2 ran out of memory is rejected.
const outOfMemory = "out of memory: the kernel ended pods f-1 and f-2 while they ran this evaluation: " +
	"give the function a larger memory limit, or make the package smaller"

// neverAnswered is why leases are rejected when the wrapper server of f-1 does not answer in time.
const neverAnswered = "pod f-1 was not ready after 20s: " +
	"its containers run, but the wrapper server does not answer"

func TestFailure(t *testing.T) {
	t.Parallel()
	play(t, []behaviour{
		{
			name:   "fatal",
			reason: "waiting leases get the kubelet's words at once; the next try comes after a second, then later and later",
			dialogue: `
				request 1 f => create f-1
				request 2 f
				see f-1 fatal =>
					reject 1 precondition retry in 1s: the kubelet says fatal;
					reject 2 precondition retry in 1s: the kubelet says fatal;
					delete f-1 failed
				gone f-1
				after 400ms
				request 3 f => reject 3 precondition retry in 600ms: the kubelet says fatal
				after 600ms
				request 4 f => create f-1'
				see f-1' fatal => reject 4 precondition retry in 2s: the kubelet says fatal; delete f-1' failed
				gone f-1'
				after 2s
				request 5 f => create f-1''
				see f-1'' fatal => reject 5 precondition retry in 4s: the kubelet says fatal; delete f-1'' failed
			`,
		},
		{
			name: "hung", reason: "the first caller that leaves without an answer has the pod checked before others get it",
			dialogue: `
				cold 1 f-1
				abandon 1 => probe f-1 for 3s
				request 2 f
				unhealthy f-1 => create f-2; delete f-1 failed
				up f-2 => grant 2 f-2 cold
			`,
		},
		{
			name: "left alone", reason: "a caller that leaves early says nothing about a pod that answers",
			dialogue: `
				cold 1 f-1
				request 2 f => grant 2 f-1
				abandon 1 => probe f-1 for 3s
				abandon 2
				healthy f-1
				request 3 f => grant 3 f-1
				abandon 3 => probe f-1 for 3s
				healthy f-1
				request 4 f => grant 4 f-1
			`,
		},
		{
			name: "hung, and one of two", reason: "while it is checked, leases get other pods",
			config: func(p *player) { p.limits.MaxPods = 2 },
			dialogue: `
				request 1 f => create f-1
				request 2 f
				request 3 f => create f-2
				up f-1 => grant 1 f-1 cold; grant 2 f-1 cold
				up f-2 => grant 3 f-2 cold
				end 2
				abandon 1 => probe f-1 for 3s
				request 4 f => grant 4 f-2
				request 5 f
				unhealthy f-1 => create f-3; delete f-1 failed
				end 3 => grant 5 f-2
			`,
		},
		{
			name: "repaired", reason: "a pod that becomes ready makes all failures forgotten",
			dialogue: `
				request 1 f => create f-1
				see f-1 fatal => reject 1 precondition retry in 1s: the kubelet says fatal; delete f-1 failed
				gone f-1
				wait 1s
				idle 2 f-1'
				see f-1' fatal => delete f-1' failed
				gone f-1'
				request 3 f => reject 3 precondition retry in 1s: the kubelet says fatal
			`,
		},
		{
			name: "long ago", reason: "what failed a minute ago does not count for leases that come now",
			dialogue: `
				request 1 f => create f-1
				see f-1 fatal => reject 1 precondition retry in 1s: the kubelet says fatal; delete f-1 failed
				gone f-1
				wait 61s
				request 2 f => create f-1'
				see f-1' fatal => reject 2 precondition retry in 1s: the kubelet says fatal; delete f-1' failed
			`,
		},
		{
			name: "fatal beside a pod that serves", reason: "there is a pod to wait for, so no lease is rejected",
			config: func(p *player) { p.limits.MaxPods = 2 },
			dialogue: `
				request 1 f => create f-1
				request 2 f
				request 3 f => create f-2
				up f-1 => grant 1 f-1 cold; grant 2 f-1 cold
				see f-2 fatal => delete f-2 failed
				gone f-2
				request 4 f
				end 1 => grant 3 f-1 cold
				end 2 => grant 4 f-1
			`,
		},
		{
			name: "out of memory twice", reason: "a third pod would be lost too, with all that others run on it",
			dialogue: `
				cold 1 f-1
				end 1 broken => probe f-1 for 3s
				request 2 f f-1
				see f-1 starved => create f-2; delete f-1 failed
				gone f-1
				up f-2 => grant 2 f-2 cold
				end 2 broken => probe f-2 for 3s
				request 3 f f-1,f-2
				request 4 f f-1,f-9
				see f-2 starved => reject 3 precondition: ` + outOfMemory + `;
					create f-1'; delete f-2 failed
				gone f-2
				request 5 f f-1,f-2 => reject 5 precondition: ` + outOfMemory + `
				up f-1' => grant 4 f-1' cold
			`,
		},
		{
			name:   "out of memory beside a pod that serves",
			reason: "the kubelet's word comes after the caller's: that one waits for it, and no other",
			config: threeServe,
			dialogue: threeServed + `
				request 4 f f-1 => grant 4 f-2
				see f-1 starved => delete f-1 failed
				gone f-1
				end 4 broken => probe f-2 for 3s
				request 5 f f-1,f-2
				request 6 f => grant 6 f-3
				see f-2 starved => reject 5 precondition: ` + outOfMemory + `;
					delete f-2 failed
			`,
		},
		{
			name:   "out of memory twice, reported before the next attempt",
			reason: "a pod that is ready would be lost too", config: threeServe,
			dialogue: threeServed + `
				see f-1 starved => delete f-1 failed
				request 4 f => grant 4 f-2
				end 4 broken => probe f-2 for 3s
				see f-2 starved => delete f-2 failed
				request 5 f f-1,f-2 => reject 5 precondition: ` + outOfMemory + `
			`,
		},
		{
			name:   "out of memory twice at once",
			reason: "the word on both is still to come, in either order", config: threeServe,
			dialogue: threeServed + `
				request 4 f f-1 => grant 4 f-2
				end 4 broken => probe f-2 for 3s
				request 5 f f-1,f-2
				see f-2 starved => delete f-2 failed
				see f-1 starved => reject 5 precondition: ` + outOfMemory + `;
					delete f-1 failed
			`,
		},
		{
			name:   "out of memory, and the caller is faster than its report",
			reason: "a request may overtake the end of the lease before: the pod is asked all the same",
			config: threeServe,
			dialogue: threeServed + `
				request 4 f f-1 => grant 4 f-2
				see f-1 starved => delete f-1 failed
				request 5 f f-1,f-2 => probe f-2 for 3s
				end 4 broken
				see f-2 starved => reject 5 precondition: ` + outOfMemory + `;
					delete f-2 failed
			`,
		},
		{
			name:   "out of memory once, and a pod that is well",
			reason: "a second pod that answers did not run out of memory", config: threeServe,
			dialogue: secondChecked + `
				healthy f-2 => grant 5 f-3
			`,
		},
		{
			name:   "out of memory once, and a pod that is lost",
			reason: "without the kubelet's report in time the evaluation is not accused", config: threeServe,
			dialogue: secondChecked + `
				wait 3s
				unhealthy f-2 => delete f-2 failed
				wait 2s
				wait 1s => grant 5 f-3
			`,
		},
		{
			name:   "out of memory twice, and a busy node",
			reason: "the kubelet's word may come when the pod has been given up", config: threeServe,
			dialogue: secondChecked + `
				wait 3s
				unhealthy f-2 => delete f-2 failed
				wait 1s
				see f-2 starved deleting => reject 5 precondition: ` + outOfMemory + `
			`,
		},
		{
			name:   "out of memory once, and a pod that is given up and gone",
			reason: "its reason is not known any more", config: threeServe,
			dialogue: secondChecked + `
				wait 3s
				unhealthy f-2 => delete f-2 failed
				gone f-2 => grant 5 f-3
			`,
		},
		{
			name:   "out of memory once, and a pod that is gone",
			reason: "there will be no word on it any more", config: threeServe,
			dialogue: secondChecked + `
				gone f-2 => grant 5 f-3
			`,
		},
		{
			name:   "out of memory once, and no word at all",
			reason: "the wait ends with the check, answered or not", config: threeServe,
			dialogue: secondChecked + `
				wait 5s
				wait 1s => grant 5 f-3; delete f-2 failed
			`,
		},
		{
			name:   "out of memory once, under a caller whom that pod failed before",
			reason: "a pod that broke twice is one pod", config: threeServe,
			dialogue: threeServed + `
				healthy f-1
				request 4 f f-1 => probe f-1 for 3s; grant 4 f-2
				request 5 f f-1 => grant 5 f-3
				request 6 f f-1
				healthy f-1 => grant 6 f-1
				end 6 broken => probe f-1 for 3s
				request 7 f f-1,f-1
				see f-1 starved => create f-4; delete f-1 failed
				end 4 => grant 7 f-2
			`,
		},
		{
			name:   "checked again and again",
			reason: "the wait for a word has one end, however often the pod is asked", config: threeServe,
			dialogue: threeServed + `
				request 4 f f-1 => grant 4 f-2
				see f-1 starved => delete f-1 failed
				set concurrency=2 pods=2
				request 6 f => grant 6 f-3
				request 7 f => grant 7 f-2
				request 8 f => grant 8 f-3
				end 4 broken => probe f-2 for 3s
				set concurrency=1
				request 5 f f-1,f-2
				wait 3s
				healthy f-2
				end 7 broken => probe f-2 for 3s
				end 6
				wait 2s
				end 8
				wait 1s => grant 5 f-3
			`,
		},
		{
			name: "lost", reason: "another pod may do better: a new try up to three times, then it is said",
			dialogue: `
				request 1 f => create f-1
				see f-1 lost => create f-2; delete f-1 failed
				gone f-1
				see f-2 lost => create f-1'; delete f-2 failed
				gone f-2
				see f-1' lost => reject 1 unavailable retry in 1s: the kubelet says lost; delete f-1' failed
			`,
		},
		{
			name:   "lost without a trace",
			reason: "pods that others delete before they are ready count as lost, however that is learned",
			dialogue: `
				request 1 f => create f-1
				see f-1 pulling
				gone f-1 => create f-1'
				see f-1' pulling deleting => create f-2
				gone f-1'
				see f-2 pulling
				gone f-2 => reject 1 unavailable retry in 1s: pod f-2 was deleted by another client before it was ready
			`,
		},
		{
			name:   "lost in service",
			reason: "three pods that went with their node say nothing about whether another would start",
			config: func(p *player) {
				p.limits.MaxPods = 3
				p.limits.MaxWaitlistLength = 1
			},
			dialogue: `
				request 1 f => create f-1
				request 2 f => create f-2
				request 3 f => create f-3
				up f-1 => grant 1 f-1 cold; grant 2 f-1 cold
				up f-2 => grant 3 f-2 cold
				up f-3
				see f-1 lost
				see f-2 lost
				see f-3 lost => delete f-3 failed
				end 1
				end 2 => delete f-1 failed
				end 3 => delete f-2 failed
				gone f-1
				request 4 f => create f-1'
			`,
		},
		{
			name: "not created", reason: "the API server's words, by the kind of problem",
			dialogue: `
				request 1 f => create f-1
				createfailed f-1 lost etcd is away => create f-1
				createfailed f-1 fatal exceeded quota => reject 1 precondition retry in 1s: exceeded quota
				wait 1s
				request 2 f => create f-1
				see f-1 scheduling
				createfailed f-1 lost it is there all the same
				up f-1 => grant 2 f-1 cold
			`,
		},
		{
			name: "no words", reason: "a problem of no kind and without words is an error too, and not silence",
			dialogue: `
				request 1 f => create f-1
				createfailed f-1 none => create f-1
				createfailed f-1 none => create f-1
				createfailed f-1 none =>
					reject 1 unavailable retry in 1s: there is no pod for the function, and Kubernetes does not say why
			`,
		},
		{
			name: "created after all", reason: "a pod that was said not to have been created is adopted when it shows up",
			dialogue: `
				request 1 f => create f-1
				createfailed f-1 fatal timeout => reject 1 precondition retry in 1s: timeout
				see f-1 running => probe f-1
				healthy f-1
				request 2 f => grant 2 f-1
			`,
		},
	})
}

func TestStandstill(t *testing.T) {
	t.Parallel()
	play(t, []behaviour{
		{
			name: "unschedulable", reason: "the scheduler has some time; after it, waiting and new leases get its words",
			dialogue: `
				request 1 f => create f-1
				see f-1 stuck
				wait 5s
				request 2 f
				wait 4s
				wait 1s => reject 1 precondition: the kubelet says stuck; reject 2 precondition: the kubelet says stuck
				request 3 f => reject 3 precondition: the kubelet says stuck
				see f-1 scheduling
				request 4 f
				up f-1 => grant 4 f-1 cold
			`,
		},
		{
			name: "a node that comes late", reason: "the time to become ready begins when the pod has a node",
			config: func(p *player) { p.limits.ReadyTimeout = 20 * time.Second },
			dialogue: `
				request 1 f => create f-1
				see f-1 scheduling
				wait 25s
				see f-1 pulling
				wait 19s
				up f-1 => grant 1 f-1 cold
			`,
		},
		{
			name: "held by the Kubernetes API", reason: "nothing has to be changed: a retry makes sense",
			dialogue: `
				request 1 f => create f-1
				see f-1 held
				wait 9s
				wait 1s => reject 1 unavailable: the kubelet says held
				see f-1 scheduling
				request 2 f
				up f-1 => grant 2 f-1 cold
			`,
		},
		{
			name: "scheduled in time", reason: "the timeout starts again with the next problem",
			dialogue: `
				request 1 f => create f-1
				see f-1 stuck
				wait 9s
				see f-1 pulling
				see f-1 stuck
				wait 9s
				up f-1 => grant 1 f-1 cold
			`,
		},
		{
			name: "not ready in time", reason: "the error says what the pod was last seen doing",
			config: func(p *player) { p.limits.ReadyTimeout = 20 * time.Second },
			dialogue: `
				request 1 f => create f-1
				see f-1 running => probe f-1
				wait 19s
				wait 1s => reject 1 precondition retry in 1s: ` + neverAnswered + `;
					delete f-1 failed
			`,
		},
		{
			name:   "not heard of",
			reason: "a pod that was never seen is not deleted: it may be another replica's, which chose the same name",
			config: func(p *player) { p.limits.ReadyTimeout = 20 * time.Second },
			dialogue: `
				request 1 f => create f-1
				wait 20s => reject 1 precondition retry in 1s: pod f-1 was not there after 20s: Kubernetes has not confirmed it
				see f-1 running => probe f-1
				healthy f-1
				request 2 f => grant 2 f-1
			`,
		},
		{
			name: "containers stop", reason: "a pod takes no lease while its containers do not run, and is asked again after",
			dialogue: `
				cold 1 f-1
				see f-1 starting
				request 2 f
				see f-1 running => probe f-1
				healthy f-1 => grant 2 f-1
			`,
		},
		{
			name:   "containers stop while it is asked",
			reason: "an answer may be that of containers that are gone, so it is asked again",
			dialogue: `
				request 1 f => create f-1
				see f-1 running => probe f-1
				see f-1 starting
				healthy f-1
				see f-1 running => probe f-1
				healthy f-1 => grant 1 f-1 cold
			`,
		},
		{
			name: "late answer", reason: "that of containers that are gone may come after the new ones are asked",
			dialogue: `
				request 1 f => create f-1
				see f-1 running => probe f-1
				see f-1 starting
				see f-1 running => probe f-1
				late f-1
				healthy f-1 => grant 1 f-1 cold
			`,
		},
		{
			name: "containers stop unseen", reason: "the observation that they ran may be lost",
			dialogue: `
				request 1 f => create f-1
				see f-1 starting address=f-1:9446 => probe f-1
				healthy f-1 => grant 1 f-1 cold
				see f-1 stuck
				request 2 f
			`,
		},
		{
			name: "never again", reason: "a pod whose containers do not come back is given up",
			config: func(p *player) { p.limits.ReadyTimeout = 20 * time.Second },
			dialogue: `
				idle 1 f-1
				wait 30s
				see f-1 starting
				wait 20s => delete f-1 failed
			`,
		},
	})
}

func TestBroken(t *testing.T) {
	t.Parallel()
	play(t, []behaviour{
		{
			name: "checked", reason: "a pod that a caller found broken serves no lease until it answers",
			dialogue: `
				cold 1 f-1
				end 1 connection refused => probe f-1 for 3s
				request 2 f f-1
				healthy f-1 => grant 2 f-1
			`,
		},
		{
			name:   "replaced",
			reason: "a pod that does not answer is deleted as soon as no lease uses it, and waiting leases get another",
			dialogue: `
				request 1 f => create f-1
				request 2 f
				up f-1 => grant 1 f-1 cold; grant 2 f-1 cold
				end 1 connection refused => probe f-1 for 3s
				request 3 f f-1
				unhealthy f-1 => create f-2
				up f-2 => grant 3 f-2 cold
				end 2 => delete f-1 failed
			`,
		},
		{
			name:   "three strikes",
			reason: "a pod that says it is healthy and is found broken three times in a row is not believed",
			dialogue: `
				cold 1 f-1
				end 1 no answer => probe f-1 for 3s
				healthy f-1
				request 2 f => grant 2 f-1
				end 2 no answer => probe f-1 for 3s
				healthy f-1
				request 3 f => grant 3 f-1
				end 3 no answer => delete f-1 failed
				request 4 f => create f-2
			`,
		},
		{
			name: "not in a row", reason: "an evaluation that went well clears a pod",
			dialogue: `
				cold 1 f-1
				end 1 no answer => probe f-1 for 3s
				healthy f-1
				request 2 f => grant 2 f-1
				end 2 no answer => probe f-1 for 3s
				healthy f-1
				request 3 f => grant 3 f-1
				end 3
				request 4 f => grant 4 f-1
				end 4 no answer => probe f-1 for 3s
			`,
		},
		{
			name: "one strike for all", reason: "connections that break at once are one event: the pod is asked, not given up",
			config: func(p *player) { p.limits.MaxConcurrency = 4; p.limits.MaxWaitlistLength = 4 },
			dialogue: `
				request 1 f => create f-1
				request 2 f
				request 3 f
				up f-1 => grant 1 f-1 cold; grant 2 f-1 cold; grant 3 f-1 cold
				end 1 reset => probe f-1 for 3s
				end 2 reset
				end 3 reset
				healthy f-1
				request 4 f => grant 4 f-1
			`,
		},
		{
			name: "no answer to the check", reason: "an answer that gets lost does not keep a pod out of service for ever",
			dialogue: `
				cold 1 f-1
				end 1 reset => probe f-1 for 3s
				request 2 f
				wait 6s => create f-2; delete f-1 failed
			`,
		},
		{
			name:   "no answer to the check of a ready pod",
			reason: "this replica may be cut off: the pod is deleted if it stays silent after another one has answered",
			dialogue: `
				cold 1 f-1
				see f-1 running ready
				end 1 reset => probe f-1 for 3s
				request 2 f
				wait 6s => create f-2
				up f-2 => grant 2 f-2 cold
				wait 2s
				wait 1s => probe f-2; delete f-1 failed
			`,
		},
		{
			name:   "a ready pod that answers after another one",
			reason: "this replica was cut off, and one pod is the first to answer",
			config: func(p *player) { p.limits.MaxPods = 2 },
			dialogue: `
				cold 1 f-1
				see f-1 running ready
				end 1 reset => probe f-1 for 3s
				request 2 f
				wait 6s => create f-2
				up f-2 => grant 2 f-2 cold
				wait 2s
				healthy f-1
				wait 10s
			`,
		},
	})
}
