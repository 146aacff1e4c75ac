// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"testing"
	"time"
)

func TestLifetime(t *testing.T) {
	t.Parallel()
	play(t, []behaviour{
		{
			name:   "unused",
			reason: "the time to live counts from readiness and from each use, and the scan comes once a minute",
			dialogue: `
				tick
				request 1 f => create f-1
				after 30s
				up f-1 => grant 1 f-1 cold
				after 30s
				end 1 => extend f-1 to 11m0s
				tick
				see f-1 running reclaim=11m
				wait 9m
				wait 59s
				wait 1s => delete f-1 ttl
				gone f-1
			`,
		},
		{
			name:   "extended",
			reason: "the end is written down once in a tenth of the time to live, however often the pod is used",
			dialogue: `
				idle 1 f-1
				after 59s
				request 2 f => grant 2 f-1
				end 2
				after 1s
				request 3 f => extend f-1 to 11m0s; grant 3 f-1
				end 3
				after 59s
				request 4 f => grant 4 f-1
				after 1s
				end 4 => extend f-1 to 12m0s
			`,
		},
		{
			name:   "one long evaluation",
			reason: "other replicas see only what is written down, so it goes on being written down",
			dialogue: `
				cold 1 f-1
				wait 3m => extend f-1 to 11m0s; extend f-1 to 12m0s; extend f-1 to 13m0s
			`,
		},
		{
			name:   "one long evaluation, a short life",
			reason: "the pod would lapse between two scans",
			config: func(p *player) { p.limits.TTL = 50 * time.Second },
			dialogue: `
				cold 1 f-1
				wait 12s => extend f-1 to 55s; extend f-1 to 1m0s
				set template=v2 => create f-2
				request 2 f => grant 2 f-1
				wait 6s => extend f-1 to 1m5s
				end 1
			`,
		},
		{
			name: "a long start, a short life", reason: "to another replica a pod that is waited for looks like an unused one",
			config: func(p *player) { p.limits.TTL = 50 * time.Second },
			dialogue: `
				request 1 f => create f-1
				see f-1 pulling
				wait 12s => extend f-1 to 55s; extend f-1 to 1m0s
				end 1
				wait 10s
			`,
		},
		{
			name:   "no life shorter than news take",
			reason: "the end of a pod in use is known to other replicas before it comes",
			config: func(p *player) { p.limits.TTL = time.Second },
			dialogue: `
				tick
				cold 1 f-1
				wait 2s => extend f-1 to 6s; extend f-1 to 7s
				end 1
				see f-1 running reclaim=7s
				wait 58s => delete f-1 ttl
			`,
		},
		{
			name: "no end written down", reason: "a pod without one, or with an unreadable one, gets one, and lives until then",
			dialogue: `
				tick
				see f-1 running reclaim=none => probe f-1
				healthy f-1
				wait 1m => extend f-1 to 10m0s
				see f-1 running reclaim=10m
				wait 8m
				wait 1m => delete f-1 ttl
			`,
		},
		{
			name: "kept for longer", reason: "no use brings an expiry forward that is written",
			dialogue: `
				tick
				see f-1 running reclaim=2h => probe f-1
				healthy f-1
				request 1 f => grant 1 f-1
				end 1
				wait 119m
				wait 1m => delete f-1 ttl
			`,
		},
		{
			name: "used elsewhere", reason: "another replica extends an expired pod before it is deleted, so it serves on",
			dialogue: `
				idle 1 f-1
				wait 11m => delete f-1 ttl
				see f-1 running reclaim=21m
				deletefailed f-1 => probe f-1
				healthy f-1
				request 2 f => grant 2 f-1
			`,
		},
		{
			name: "used elsewhere, as seen later", reason: "the deletion was refused before the extension was seen",
			dialogue: `
				idle 1 f-1
				wait 11m => delete f-1 ttl
				deletefailed f-1
				see f-1 running reclaim=21m => probe f-1
				healthy f-1
				request 2 f => grant 2 f-1
			`,
		},
		{
			name: "deletion fails", reason: "it is tried again, with the version that is known then",
			dialogue: `
				idle 1 f-1
				wait 11m => delete f-1 ttl
				deletefailed f-1
				see f-1 running
				wait 1s => delete f-1 ttl
				wait 2m => delete f-1 ttl
				see f-1 running deleting
				wait 119s
				wait 1s => delete f-1 ttl
				gone f-1
				wait 5m
			`,
		},
		{
			name: "deletions refused", reason: "by a webhook, for instance: the time between two attempts doubles",
			dialogue: `
				idle 1 f-1
				wait 11m => delete f-1 ttl
				deletefailed f-1
				wait 1s => delete f-1 ttl
				deletefailed f-1
				wait 1s
				wait 1s => delete f-1 ttl
				deletefailed f-1
				wait 3s
				wait 1s => delete f-1 ttl
			`,
		},
		{
			name: "used again after a refused deletion", reason: "a new pod would start cold, or be refused too",
			dialogue: `
				idle 1 f-1
				wait 11m => delete f-1 ttl
				deletefailed f-1
				request 2 f => probe f-1
				healthy f-1 => extend f-1 to 21m0s; grant 2 f-1
				end 2
				wait 11m => delete f-1 ttl
			`,
		},
		{
			name: "used again after a refused creation", reason: "the expired pod comes before the next attempt",
			config: func(p *player) { p.config.InProcess = true },
			dialogue: `
				idle 1 f-1
				wait 11m => delete f-1 ttl
				request 2 f => create f-2
				createfailed f-2 held the Kubernetes API is away
				deletefailed f-1 => probe f-1
				healthy f-1 => extend f-1 to 21m0s; grant 2 f-1
			`,
		},
		{
			name:   "deleted by others",
			reason: "a pod that Kubernetes ends takes no lease, and is replaced under a new name",
			dialogue: `
				cold 1 f-1
				see f-1 running deleting
				request 2 f => create f-2
				end 1
				gone f-1
				up f-2 => grant 2 f-2 cold
				gone f-2
				request 3 f => create f-1'
			`,
		},
		{
			name: "deleted by others, and stays", reason: "after two minutes it is asked for again; the node may be gone",
			dialogue: `
				idle 1 f-1
				see f-1 running deleting
				wait 119s
				wait 1s => delete f-1
			`,
		},
		{
			name: "flapping", reason: "a pod whose containers come and go is not kept by that",
			config: func(p *player) { p.limits.TTL = 2 * time.Minute },
			dialogue: `
				tick
				idle 1 f-1
				wait 1m
				see f-1 starting
				see f-1 running => probe f-1
				healthy f-1
				wait 50s
				see f-1 starting
				wait 10s => delete f-1 ttl
			`,
		},
		{
			name: "a minimum of one", reason: "the pod is kept although no lease needs it, until it is not listed any more",
			dialogue: `
				minimum f 1 => create f-1
				minimum f 1
				up f-1
				request 1 f => grant 1 f-1
				end 1
				wait 2m => extend f-1 to 11m0s; extend f-1 to 12m0s
				minimum f 0
				see f-1 running reclaim=12m
				wait 11m => delete f-1 ttl
				gone f-1
			`,
		},
		{
			name: "a minimum beside a second pod", reason: "the pod in the higher slot goes, and the minimum stays",
			config: func(p *player) {
				p.limits.MaxPods = 2
				p.limits.MaxWaitlistLength = 1
				p.limits.TTL = 50 * time.Second
			},
			dialogue: `
				tick
				minimum f 1 => create f-1
				up f-1
				request 1 f => grant 1 f-1
				request 2 f => grant 2 f-1; create f-2
				up f-2
				end 1
				end 2
				wait 30s =>
					extend f-1 to 55s; extend f-1 to 1m0s; extend f-1 to 1m5s;
					extend f-1 to 1m10s; extend f-1 to 1m15s; extend f-1 to 1m20s
				see f-1 running reclaim=1m20s
				wait 30s =>
					extend f-1 to 1m25s; extend f-1 to 1m30s; extend f-1 to 1m35s;
					extend f-1 to 1m40s; extend f-1 to 1m45s; extend f-1 to 1m50s;
					delete f-2 ttl
			`,
		},
		{
			name: "a minimum of a new version", reason: "an idle pod of the minimum is replaced before a lease uses it",
			dialogue: `
				tick
				minimum f 1 => create f-1
				up f-1
				set template=v2 => create f-2
				up f-2 => delete f-1 template
			`,
		},
		{
			name: "a minimum that fails",
			reason: "a lost pod is replaced at once; a fatal problem is tried again each minute, " +
				"and a caller does not wait so long",
			dialogue: `
				minimum f 1 => create f-1
				see f-1 lost => create f-2; delete f-1 failed
				gone f-1
				see f-2 fatal => delete f-2 failed
				gone f-2
				wait 59s
				wait 1s => create f-1'
				see f-1' fatal => delete f-1' failed
				gone f-1'
				wait 2s
				request 1 f => create f-1''
			`,
		},
		{
			name: "a minimum of what starts", reason: "if the pod that is on its way fails, another one is made",
			dialogue: `
				request 1 f => create f-1
				end 1
				minimum f 1
				see f-1 lost => create f-2; delete f-1 failed
				up f-2
			`,
		},
		{
			name: "a minimum no more", reason: "what is not listed any more is not made",
			dialogue: `
				minimum f 1 => create f-1
				up f-1
				minimum f 0
				gone f-1
				tick
			`,
		},
		{
			name: "a minimum after failures", reason: "its pod comes when the pause is over",
			dialogue: `
				request 1 f => create f-1
				see f-1 fatal => reject 1 precondition retry in 1s: the kubelet says fatal; delete f-1 failed
				minimum f 1
				wait 1m => create f-2
			`,
		},
		{
			name:   "names",
			reason: "a successor never has the name of a pod whose end may not be over; ten minutes later the names begin anew",
			dialogue: `
				idle 1 f-1
				gone f-1
				idle 2 f-1'
				gone f-1'
				wait 9m
				minimum f 1 => create f-1''
				minimum f 0
				up f-1''
				gone f-1''
				wait 11m
				minimum f 1 => create f-1
			`,
		},
	})
}

func TestTemplate(t *testing.T) {
	t.Parallel()
	play(t, []behaviour{
		{
			name: "replaced once another serves", reason: "callers get the old pod until one of the new template is ready",
			dialogue: `
				idle 1 f-1
				set template=v2
				request 2 f => grant 2 f-1; create f-2
				up f-2
				request 3 f => grant 3 f-2
				end 2 => delete f-1 template
			`,
		},
		{
			name: "no new one can be made", reason: "the old pod serves for as long as a wrong template lasts",
			dialogue: `
				tick
				idle 1 f-1
				set template=v2
				request 2 f => grant 2 f-1; create f-2
				createfailed f-2 fatal no such runtime class
				end 2
				request 3 f => grant 3 f-1
				wait 1s => create f-2
				see f-2 fatal => delete f-2 failed
				gone f-2
				request 4 f => grant 4 f-1
				end 3
				end 4
				wait 1m
				set template=v3
				request 5 f => extend f-1 to 11m1s; grant 5 f-1; create f-2'
				up f-2'
				end 5 => delete f-1 template
			`,
		},
		{
			name: "one after the other", reason: "a pool has one pod more than it needs while pods are replaced",
			config: twoPods,
			dialogue: `
				request 1 f => create f-1
				request 2 f => create f-2
				up f-1 => grant 1 f-1 cold; grant 2 f-1 cold
				up f-2
				request 3 f => grant 3 f-2
				set template=v2 => create f-3
				up f-3 => create f-4
				end 1
				end 2 => delete f-1 template
				request 4 f => grant 4 f-3
				up f-4
				end 3 => delete f-2 template
			`,
		},
		{
			name: "no room for another", reason: "at a quota, an idle pod of another function makes way",
			dialogue: `
				tick
				cold 1 f-1
				see g-1 running => probe g-1
				healthy g-1
				after 2m
				set template=v2 => create f-2
				createfailed f-2 full exceeded quota => delete g-1 capacity
				gone g-1 => create f-2
				up f-2
				end 1 => delete f-1 template
			`,
		},
		{
			name: "drained while in use", reason: "leases that it holds go on, and the pod is deleted after",
			dialogue: `
				cold 1 f-1
				set template=v2 => create f-2
				request 2 f => grant 2 f-1
				up f-2
				end 1
				end 2 => delete f-1 template
			`,
		},
		{
			name: "idle", reason: "no pod is made for a function that is not used, and an unused pod expires",
			dialogue: `
				tick
				idle 1 f-1
				set template=v2
				wait 9m
				wait 1m => delete f-1 ttl
			`,
		},
		{
			name: "changed and changed back", reason: "only the present template counts",
			dialogue: `
				idle 1 f-1
				set template=v2
				set template=v1
				request 2 f => grant 2 f-1
			`,
		},
	})
}

// TestSettings has what shapes pods beside their template change.
func TestSettings(t *testing.T) {
	t.Parallel()
	play(t, []behaviour{
		{
			name: "replaced once another serves", reason: "callers get the old pod until one with the new settings is ready",
			dialogue: `
				idle 1 f-1
				set settings=s2
				request 2 f => grant 2 f-1; create f-2
				up f-2
				end 2 => delete f-1 template
			`,
		},
		{
			name: "limits", reason: "what does not shape pods leaves them alone",
			dialogue: `
				idle 1 f-1
				set pods=2 concurrency=4
				request 2 f => grant 2 f-1
			`,
		},
		{
			name:   "without a settings version",
			reason: "an earlier version of this program wrote no settings: its pods are replaced",
			config: func(p *player) { p.limits.Settings = "s1" },
			dialogue: `
				after 5m
				see f-1 running settings= created=0s => probe f-1
				healthy f-1
				request 1 f => grant 1 f-1; create f-2
			`,
		},
	})
}

func TestTemplateOfAnotherReplica(t *testing.T) {
	t.Parallel()
	play(t, []behaviour{
		{
			name: "found", reason: "it was there long before this replica, and is replaced",
			dialogue: `
				after 5m
				see f-1 running template=v0 created=0s => probe f-1
				healthy f-1
				request 1 f => grant 1 f-1; create f-2
			`,
		},
		{
			name: "just made", reason: "while a new version is rolled out, replicas of both use each other's pods",
			dialogue: `
				after 5m
				see f-1 running template=v2 created=4m50s => probe f-1
				request 1 f
				healthy f-1 => grant 1 f-1
				end 1
				wait 59s
				request 2 f => grant 2 f-1
			`,
		},
		{
			name: "a name that both chose", reason: "the other replica's pod serves this one too",
			dialogue: `
				request 1 f => create f-1
				see f-1 scheduling template=v2
				up f-1 => grant 1 f-1 cold
			`,
		},
		{
			name: "made a while ago", reason: "by now the rollout is over, and it is replaced",
			dialogue: `
				see f-1 scheduling template=v0
				up f-1
				after 1m
				request 1 f => extend f-1 to 11m0s; grant 1 f-1; create f-2
			`,
		},
		{
			name: "made after this one came", reason: "for as long as replicas of two versions run they use each other's pods",
			dialogue: `
				tick
				after 5m
				see f-1 scheduling template=v2
				up f-1
				wait 2m
				request 1 f => extend f-1 to 17m0s; grant 1 f-1
			`,
		},
		{
			name:   "of a version that this one had",
			reason: "a replica that has not heard of the change made it, uses it, and replaces it when it hears",
			dialogue: `
				tick
				after 5m
				set template=v2
				after 10s
				see f-1 scheduling template=v1
				up f-1
				request 1 f => grant 1 f-1
				end 1
				after 1m
				request 2 f => extend f-1 to 16m10s; grant 2 f-1
			`,
		},
		{
			name:   "in the place of one of ours",
			reason: "the other replica lets ours finish what it has: both are there for a while",
			dialogue: `
				tick
				idle 1 f-1
				after 2m
				see f-2 running template=v2 => probe f-2
				healthy f-2
				tick
				see f-1 running deleting
				wait 58s
				request 2 f => grant 2 f-2
			`,
		},
		{
			name: "made before a change", reason: "after a change of the template, a pod of it comes at once",
			dialogue: `
				see f-1 scheduling template=v0
				up f-1
				set template=v2
				request 1 f => grant 1 f-1; create f-2
			`,
		},
		{
			name: "template not known", reason: "a pod that is there serves until it is known to be of another template",
			config: func(p *player) { p.config.Template = "" },
			dialogue: `
				see f-1 scheduling template=v0
				up f-1
				after 2m
				tick
				request 1 f => extend f-1 to 12m0s; grant 1 f-1
				set template=v1 => create f-2
				request 2 f => grant 2 f-1
				end 1
			`,
		},
		{
			name: "template repaired", reason: "a user who repaired it does not wait for the next attempt",
			config: func(p *player) { p.config.Template = "" },
			dialogue: `
				request 1 f => create f-1
				createfailed f-1 fatal no template => reject 1 precondition retry in 1s: no template
				request 2 f => reject 2 precondition retry in 1s: no template
				set template=v1
				request 3 f => create f-1
			`,
		},
		{
			name:   "deletes ours",
			reason: "pods that are lost together are one attempt, and after two of those there is a third",
			config: twoPods,
			dialogue: `
				request 1 f => create f-1
				request 2 f => create f-2
				see f-1 pulling
				see f-2 pulling
				after 1s
				gone f-1 => create f-1'
				gone f-2 => create f-2'
				see f-1' pulling
				see f-2' pulling
				after 1s
				gone f-1' => create f-1''
				gone f-2' => create f-2''
				up f-1'' => grant 1 f-1'' cold; grant 2 f-1'' cold
			`,
		},
	})
}
