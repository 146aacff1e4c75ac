// SPDX-License-Identifier: Apache-2.0

// Package probe asks wrapper servers for their health, so that a pod is used as soon
// as it can be, and not when Kubernetes has found out.
package probe

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

const (
	// parallel bounds the pods that are asked at a time. A burst of thousands, as when a
	// replica adopts the pods of another one, is answered faster in turns: more connections
	// at a time only keep each other from being set up.
	parallel = 64
	// turn is how long a pod is asked before others get a turn.
	turn = 2 * time.Second
)

// Prober asks pods for their health. Use [New]; Run has to run while it is used.
type Prober struct {
	report func(pool.Event)
	// ask asks a pod until it serves, or ctx ends.
	ask  func(ctx context.Context, pod pool.Probe) error
	wake chan struct{} // with a capacity of one

	mu      sync.Mutex
	queue   queue
	running int
	current map[string]*probe // the last one of each pod, by name
}

// probe is the question to one pod.
type probe struct {
	action pool.Probe
	ended  context.CancelFunc // nil while it has no turn
	turns  int
	over   bool // nothing waits for the answer
}

// New returns a prober that reports [pool.Probed] and [pool.Unanswered]. It shows pods the certificate of this
// program, if that has one: then a pod serves that accepts it.
func New(identity *mtls.Identity, report func(pool.Event)) *Prober {
	return NewAsking(asker{identity}.askUntilServing, report)
}

// NewAsking returns a prober that asks in another way: ask returns nil as soon as the pod
// serves, or what was wrong last when ctx ends.
func NewAsking(ask func(ctx context.Context, pod pool.Probe) error, report func(pool.Event)) *Prober {
	return &Prober{report: report, ask: ask, wake: make(chan struct{}, 1), current: make(map[string]*probe)}
}

// Probe asks a pod for its health until it serves, its timeout ends, or another
// probe of it begins. The timeout begins with its first turn. Probe does not wait for the answer.
func (p *Prober) Probe(action pool.Probe) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endProbe(action.Name)
	next := &probe{action: action}
	p.current[action.Name] = next
	p.queue.addFresh(next)
	p.wakeUp()
}

func (p *Prober) wakeUp() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Forget ends the probe of a pod that is gone, unless another pod has its name now.
func (p *Prober) Forget(pod, uid string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if current, ok := p.current[pod]; ok && current.action.UID == uid {
		p.endProbe(pod)
	}
}

// endProbe ends the probe of a pod, begun or not. The caller holds the lock.
func (p *Prober) endProbe(pod string) {
	current, ok := p.current[pod]
	if !ok {
		return
	}
	delete(p.current, pod)
	current.over = true
	if current.ended != nil {
		current.ended()
	} else {
		p.queue.countEnded()
	}
}

// Run probes until ctx ends, and returns after the last probe did. There is one for
// each pod at most.
func (p *Prober) Run(ctx context.Context) error {
	var running errgroup.Group
	defer func() { _ = running.Wait() }() // they return no errors
	for {
		for next, turn := p.nextTurn(ctx); next != nil; next, turn = p.nextTurn(ctx) {
			running.Go(func() error {
				p.takeTurn(turn, next)
				return nil
			})
		}
		select {
		case <-p.wake:
		case <-ctx.Done():
			return nil
		}
	}
}

// nextTurn returns the probe whose turn it is, with the context of that turn; nil if none waits, or
// as many as may run do.
func (p *Prober) nextTurn(ctx context.Context) (*probe, context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running == parallel || ctx.Err() != nil {
		return nil, nil
	}
	next := p.queue.next()
	if next == nil {
		return nil, nil
	}
	p.running++
	ctx, next.ended = context.WithCancel(ctx)
	return next, ctx
}

// takeTurn asks a pod for one turn, and reports what came of it.
func (p *Prober) takeTurn(ctx context.Context, current *probe) {
	a := current.action
	length := turn
	if a.Timeout > 0 {
		length = a.Timeout
	}
	asking, cancel := context.WithTimeout(ctx, length)
	err := p.ask(asking, a)
	cancel()
	stopped := ctx.Err() != nil
	switch p.finishTurn(current, stopped, err == nil || a.Timeout > 0) {
	case unwanted:
		return
	case unanswered:
		p.report(pool.Unanswered{Name: a.Name, UID: a.UID, Question: a.Question})
		return
	case answered:
	}
	unhealthy := ""
	if err != nil {
		unhealthy = err.Error()
	}
	p.report(pool.Probed{Name: a.Name, UID: a.UID, Question: a.Question, Unhealthy: unhealthy})
}

// result is what came of a turn.
type result int

const (
	unwanted   result = iota // it changes nothing
	unanswered               // the first turn was in vain
	answered
)

// finishTurn ends the turn of a probe, and returns what is to be reported about it. One that is not
// answered waits for another turn.
func (p *Prober) finishTurn(former *probe, stopped, over bool) result {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running--
	p.wakeUp()
	former.ended()
	former.ended = nil
	switch {
	case stopped, former.over:
		return unwanted
	case over:
		former.over = true
		delete(p.current, former.action.Name)
		return answered
	}
	former.turns++
	p.queue.addTried(former)
	if former.turns > 1 {
		return unwanted
	}
	return unanswered
}
