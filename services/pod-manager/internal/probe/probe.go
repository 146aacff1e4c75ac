// SPDX-License-Identifier: Apache-2.0

// Package probe asks wrapper servers for their health, so that a pod is used as soon
// as it can be, and not when Kubernetes has found out.
package probe

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// Prober asks pods for their health. Use [New]; Run has to run while it is used.
type Prober struct {
	report func(pool.Event)
	wake   chan struct{} // with a capacity of one

	mu      sync.Mutex
	waiting []*probe          // not begun yet
	current map[string]*probe // the last one of each pod, by name
}

// probe is the question to one pod.
type probe struct {
	action pool.Probe
	ended  context.CancelFunc // nil until it has begun
}

// New returns a prober that reports [pool.Probed].
func New(report func(pool.Event)) *Prober {
	return &Prober{report: report, wake: make(chan struct{}, 1), current: make(map[string]*probe)}
}

// Probe asks a pod for its health until it serves, its timeout ends, or another
// probe of it begins. It does not wait for the answer.
func (p *Prober) Probe(action pool.Probe) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end(action.Name)
	next := &probe{action: action}
	p.current[action.Name] = next
	p.waiting = append(p.waiting, next)
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
		p.end(pod)
	}
}

// end ends the probe of a pod, begun or not. The caller holds the lock.
func (p *Prober) end(pod string) {
	current, ok := p.current[pod]
	if !ok {
		return
	}
	delete(p.current, pod)
	if current.ended != nil {
		current.ended()
	}
}

// Run probes until ctx ends, and returns after the last probe did. There is one for
// each pod at most.
func (p *Prober) Run(ctx context.Context) error {
	var running errgroup.Group
	defer func() { _ = running.Wait() }() // they return no errors
	for {
		for _, next := range p.take() {
			probing, ok := p.begin(ctx, next)
			if !ok {
				continue
			}
			running.Go(func() error {
				defer p.done(next)
				p.probe(probing, next.action)
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

func (p *Prober) take() []*probe {
	p.mu.Lock()
	defer p.mu.Unlock()
	waiting := p.waiting
	p.waiting = nil
	return waiting
}

// begin returns the context of a probe; false if it has been ended already.
func (p *Prober) begin(ctx context.Context, next *probe) (context.Context, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current[next.action.Name] != next {
		return nil, false
	}
	ctx, next.ended = context.WithCancel(ctx)
	return ctx, true
}

// done forgets a probe that is over.
func (p *Prober) done(former *probe) {
	p.mu.Lock()
	defer p.mu.Unlock()
	former.ended()
	if p.current[former.action.Name] == former {
		delete(p.current, former.action.Name)
	}
}

// probe asks until the answer is known, and reports it.
func (p *Prober) probe(ctx context.Context, action pool.Probe) {
	asking, cancel := ctx, context.CancelFunc(func() {})
	if action.Timeout > 0 {
		asking, cancel = context.WithTimeout(ctx, action.Timeout)
	}
	defer cancel()
	err := ask(asking, action.Address)
	if ctx.Err() != nil {
		return // the answer is not wanted any more
	}
	unhealthy := ""
	if err != nil {
		unhealthy = err.Error()
	}
	p.report(pool.Probed{Name: action.Name, UID: action.UID, Question: action.Question, Unhealthy: unhealthy})
}
