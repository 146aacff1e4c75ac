// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"fmt"
	"strconv"
	"time"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// alive reports whether the containers of a pod run.
func (p *kubePod) alive() bool {
	return !p.ended && p.seen.Phase == pool.PhaseConnecting && p.seen.Problem.Kind == pool.None
}

// born adds a pod, unless there is one of this name.
func (k *kube) born(a pool.Create, madeWith setup) *kubePod {
	if p, ok := k.pods[a.Name]; ok {
		k.announce(p)
		return p
	}
	if k.births == nil {
		k.births = make(map[string]int)
	}
	k.births[a.Name]++
	p := &kubePod{seen: pool.Observation{
		Name: a.Name, UID: fmt.Sprintf("%s#%d", a.Name, k.births[a.Name]), Function: a.Function, Slot: a.Slot,
		TemplateVersion: madeWith.Template, SettingsVersion: madeWith.Settings,
		Created: k.world.now, ReclaimAfter: a.ReclaimAfter, Phase: pool.PhaseScheduling,
	}}
	k.pods[a.Name] = p
	k.changed(p)
	k.proceed(p)
	return p
}

// proceed takes a pod to its next phase, in time.
func (k *kube) proceed(p *kubePod) {
	w := k.world
	phase := p.seen.Phase
	w.after(w.delay(3*time.Second, "phase", p.seen.UID, p.version), func() {
		if p.ended || p.seen.Phase != phase || p.seen.Problem.Kind == pool.Lost || p.seen.Problem.Kind == pool.Fatal {
			return
		}
		p.seen.Problem = pool.Problem{}
		switch {
		case phase == pool.PhaseScheduling && k.full.After(w.now):
			p.seen.Problem = pool.Problem{Kind: pool.Stuck, Reason: "0/3 nodes are available"}
		case phase == pool.PhasePulling && k.broken[p.seen.Function.Reference].After(w.now):
			p.seen.Problem = pool.Problem{Kind: pool.Fatal, Reason: "ErrImagePull: unauthorized"}
		case w.fault(40, "start", p.seen.UID, p.version):
			p.seen.Problem = pool.Problem{Kind: pool.Lost, Reason: "Evicted: the node was low on memory"}
		case phase < pool.PhaseConnecting:
			p.seen.Phase++
		}
		if p.seen.Phase >= pool.PhaseStarting {
			p.seen.Address = p.seen.Name + ":9446"
			p.seen.Node = "node-" + strconv.Itoa(w.roll(3, "node", p.seen.UID))
		}
		k.changed(p)
		if p.seen.Phase < pool.PhaseConnecting {
			k.proceed(p)
		}
	})
}

// probe asks a pod until it answers, it is gone, or the timeout is over.
func (k *kube) probe(a pool.Probe) {
	begin, n := k.world.now, k.try("probe "+a.UID)
	if k.world.fault(40, "probe", a.UID, n) {
		return
	}
	k.ask(a, begin, n)
}

func (k *kube) ask(a pool.Probe, begin time.Time, n int) {
	w, epoch := k.world, k.world.epoch
	pause := w.now.Sub(begin) / 8 // it asks less and less often
	w.after(pause+w.delay(500*time.Millisecond, "probe", a.UID, n), func() {
		p, ok := k.pods[a.Name]
		switch {
		case w.epoch != epoch || !ok || p.seen.UID != a.UID:
		case p.alive() && !p.unhealthy.After(w.now):
			w.tell(pool.Probed{Name: a.Name, UID: a.UID, Question: a.Question})
		case a.Timeout > 0 && w.now.Sub(begin) >= a.Timeout:
			w.tell(pool.Probed{Name: a.Name, UID: a.UID, Question: a.Question, Unhealthy: "connection refused"})
		default:
			k.ask(a, begin, n)
		}
	})
}
