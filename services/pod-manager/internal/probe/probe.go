// SPDX-License-Identifier: Apache-2.0

// Package probe checks the health of new pods, so that they can serve before Kubernetes reports them as ready.
package probe

import (
	"context"
	"sync"
	"time"

	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

const (
	// parallel is the maximum number of concurrent probes. Thousands of probes start at once when, for instance, a replica
	// adopts the pods of another replica. They complete sooner with the limit, because too many connections slow each
	// other down.
	parallel = 64
	// turn is the time that a probe without a timeout may run before it waits again behind other probes.
	turn = 2 * time.Second
)

// Prober checks the health of wrapper servers, the programs that run functions in pods. Create it with [New]. No check
// starts before [Prober.Run].
type Prober struct {
	report func(pool.Event)
	// ask probes a pod until the pod is healthy or ctx is done.
	ask  func(ctx context.Context, pod pool.Probe) error
	wake chan struct{} // wakes Run, has capacity 1

	mu      sync.Mutex
	queue   queue
	running int
	current map[string]*probe // latest probe of each pod, by name
}

// probe is a health check of a pod. It lasts until it has a result, is cancelled, or is replaced by the next check.
type probe struct {
	action pool.Probe
	ended  context.CancelFunc // cancels the current turn, nil between turns
	turns  int
	over   bool // true if cancelled or answered
}

// New returns a Prober. It passes each result, [pool.Probed] or [pool.Unanswered], to the callback. If this program has
// an identity, the Prober presents the identity's certificate to pods. A pod that rejects the pod-manager as a caller
// counts as unhealthy.
func New(identity *mtls.Identity, report func(pool.Event)) *Prober {
	return NewAsking(asker{identity}.probeUntilServing, report)
}

// NewAsking is like [New], but checks the health of a pod with the function ask. This function must return nil as soon
// as the pod is healthy, or the last error when ctx is done.
func NewAsking(ask func(ctx context.Context, pod pool.Probe) error, report func(pool.Event)) *Prober {
	return &Prober{report: report, ask: ask, wake: make(chan struct{}, 1), current: make(map[string]*probe)}
}

// Probe starts to check the health of a pod, and does not block. The check ends when the pod is healthy, the timeout
// expires, or a later call of Probe for the pod replaces it. The timeout counts from the first run of the check,
// because the check may wait behind other checks.
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

// Forget cancels the probe of a deleted pod. The UID protects the probe of a new pod with the same name.
func (p *Prober) Forget(pod, uid string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if current, ok := p.current[pod]; ok && current.action.UID == uid {
		p.endProbe(pod)
	}
}

// endProbe cancels the probe of a pod. The caller must hold the lock.
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

// Run runs the requested probes, at most one per pod, until ctx is done. It then waits for running probes to end.
func (p *Prober) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	for {
		for next, turn := p.nextTurn(ctx); next != nil; next, turn = p.nextTurn(ctx) {
			running.Go(func() { p.takeTurn(turn, next) })
		}
		select {
		case <-p.wake:
		case <-ctx.Done():
			return nil
		}
	}
}

// nextTurn removes the next probe from the queue, and returns it with a context that ends when the probe is cancelled.
// It returns nil if the queue is empty, or if the maximum number of probes is running.
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

// takeTurn runs a probe and reports its result. The run lasts at most for the probe's timeout, or else 2 s (turn).
func (p *Prober) takeTurn(ctx context.Context, current *probe) {
	a := current.action
	length := turn
	if a.Timeout > 0 {
		length = a.Timeout
	}
	asking, cancel := context.WithTimeout(ctx, length)
	err := p.ask(asking, a)
	cancel()
	if event := p.finishTurn(current, ctx.Err() != nil, err); event != nil {
		p.report(event)
	}
}

// finishTurn records that the turn of a probe (a limited time to run) is over. It returns the event with the result, or
// nil. A probe without a result waits for another turn. finishTurn returns [pool.Unanswered] only after the first turn.
// The argument stopped is true if the probe was cancelled.
func (p *Prober) finishTurn(former *probe, stopped bool, err error) pool.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running--
	p.wakeUp()
	former.ended()
	former.ended = nil
	a := former.action
	switch {
	case stopped, former.over:
		return nil
	case err == nil || a.Timeout > 0:
		former.over = true
		delete(p.current, a.Name)
		probed := pool.Probed{Name: a.Name, UID: a.UID, Question: a.Question}
		if err != nil {
			probed.Unhealthy = err.Error()
		}
		return probed
	}
	former.turns++
	p.queue.addTried(former)
	if former.turns > 1 {
		return nil
	}
	return pool.Unanswered{Name: a.Name, UID: a.UID, Question: a.Question}
}
