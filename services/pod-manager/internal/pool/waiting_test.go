// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

func TestReports(t *testing.T) {
	t.Parallel()
	play(t, []behaviour{
		{
			name: "cold start", reason: "each step is told once, in the words of Kubernetes if it has any", reports: true,
			dialogue: `
				request 1 f => create f-1; tell 1 creating no. 1: making pod f-1 ready
				request 2 f => tell 2 creating no. 2: making pod f-1 ready
				see f-1 scheduling => tell 1 scheduling no. 1: making pod f-1 ready; tell 2 scheduling no. 2: making pod f-1 ready
				see f-1 scheduling
				see f-1 pulling => tell 1 pulling no. 1: making pod f-1 ready; tell 2 pulling no. 2: making pod f-1 ready
				see f-1 running => probe f-1;
					tell 1 connecting no. 1: making pod f-1 ready; tell 2 connecting no. 2: making pod f-1 ready
				healthy f-1 => grant 1 f-1 cold; grant 2 f-1 cold
			`,
		},
		{
			name:   "queue",
			reason: "positions alone are told with the next tick, or each grant would be reported to all", reports: true,
			config: func(p *player) { p.limits.MaxConcurrency = 1 },
			dialogue: `
				request 1 f => create f-1; tell 1 creating no. 1: making pod f-1 ready
				request 2 f => tell 2 creating no. 2: making pod f-1 ready
				request 3 f => tell 3 creating no. 3: making pod f-1 ready
				up f-1 =>
					tell 1 connecting no. 1: making pod f-1 ready;
					tell 2 connecting no. 2: making pod f-1 ready;
					tell 3 connecting no. 3: making pod f-1 ready;
					grant 1 f-1 cold;
					tell 2 queued no. 1: all 1 pods of the function are busy;
					tell 3 queued no. 2: all 1 pods of the function are busy
				end 1 => grant 2 f-1 cold
				tick => tell 3 queued no. 1: all 1 pods of the function are busy
				tick
			`,
		},
		{
			name:   "the most advanced pod",
			reason: "who waits hears of the pod that will probably be ready first", reports: true,
			config: func(p *player) { p.limits.MaxPods = 2; p.limits.MaxWaitlistLength = 1 },
			dialogue: `
				request 1 f => create f-1; tell 1 creating no. 1: making pod f-1 ready
				request 2 f => create f-2; tell 2 creating no. 2: making pod f-1 ready
				see f-2 pulling => tell 1 pulling no. 1: making pod f-2 ready; tell 2 pulling no. 2: making pod f-2 ready
				see f-1 scheduling
			`,
		},
		{
			name: "out of memory", reason: "who waits for the kubelet's word is told so", reports: true,
			config: threeServe,
			dialogue: `
				see f-1 running => probe f-1
				healthy f-1
				see f-2 running => probe f-2
				healthy f-2
				see f-3 running => probe f-3
				healthy f-3
				request 1 f => grant 1 f-1
				end 1 broken => probe f-1 for 3s
				request 2 f f-1 => grant 2 f-2
				end 2 broken => probe f-2 for 3s
				request 3 f f-1,f-2 => tell 3 queued no. 1: finding out why pods f-1 and f-2 broke
				healthy f-1 => grant 3 f-3
			`,
		},
		{
			name: "no capacity", reason: "a lease that waits for other functions' pods gets that reason", reports: true,
			dialogue: `
				request 1 f => create f-1; tell 1 creating no. 1: making pod f-1 ready
				request 2 g => create g-1; tell 2 creating no. 1: making pod g-1 ready
				createfailed g-1 full exceeded quota => tell 2 queued no. 1: ` + noRoom + `
			`,
		},
		{
			name: "an outage", reason: "during the next attempt too, the reason is the last one's", reports: true,
			config: func(p *player) { p.config.InProcess = true },
			dialogue: `
				request 1 f => create f-1; tell 1 creating no. 1: making pod f-1 ready
				createfailed f-1 held no answer => tell 1 queued no. 1: no answer
				wait 1s => create f-1; tell 1 creating no. 1: no answer
				createfailed f-1 held no answer => tell 1 queued no. 1: no answer
			`,
		},
	})
}

func TestPhases(t *testing.T) {
	t.Parallel()
	p := newPlayer(behaviour{})
	var grant pool.Grant
	for _, step := range []struct {
		event string
		after time.Duration
	}{
		{event: "request 1 f", after: time.Second},
		{event: "see f-1 scheduling", after: 2 * time.Second},
		{event: "see f-1 pulling", after: 3 * time.Second},
		{event: "see f-1 lost", after: 100 * time.Millisecond}, // another one is created
		{event: "see f-2 scheduling", after: 20 * time.Millisecond},
		{event: "see f-2 running", after: 5 * time.Millisecond},
	} {
		if _, err := p.play(step.event); err != nil {
			t.Fatal(err)
		}
		p.now = p.now.Add(step.after)
	}
	actions, err := p.referee.handle(p.now, p.event("healthy", []string{"f-2"}))
	if err != nil || len(actions) != 1 {
		t.Fatalf("actions are %+v, error %v", actions, err)
	}
	grant, _ = actions[0].(pool.Grant)
	want := []pool.PhaseDuration{
		{Phase: pool.PhaseCreating, Duration: time.Second + 100*time.Millisecond},
		{Phase: pool.PhaseScheduling, Duration: 2*time.Second + 20*time.Millisecond},
		{Phase: pool.PhasePulling, Duration: 3 * time.Second},
		{Phase: pool.PhaseConnecting, Duration: 5 * time.Millisecond},
	}
	if diff := cmp.Diff(want, grant.Phases); diff != "" {
		t.Errorf("phases, those of both attempts added up (-want +got):\n%s", diff)
	}
}
