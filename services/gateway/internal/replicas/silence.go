// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"sync"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/retry"
	"github.com/krm-function-runner/function-runner/libs/rpcclient"
)

const (
	// avoidFor is how long a replica that answered without a lease is asked after all others.
	avoidFor = 3 * time.Second
	// probeInterval is how often silent replicas are probed, and probeTimeout bounds a probe.
	probeInterval = 500 * time.Millisecond
	probeTimeout  = time.Second
)

// errSilent is the silence of a replica.
var errSilent = fault.New(fault.Unavailable, "no answer within %v", firstAnswerTimeout)

// markFailed has a replica that granted no lease asked after all others: for avoidFor, or, if it did not
// answer at all, until it answers a probe.
func (m *Manager) markFailed(ctx context.Context, r *replica, err error) {
	if lease.IsUnanswered(err) || fault.Of(err) == fault.DeadlineExceeded {
		m.markSilent(ctx, r, err)
		return
	}
	now := time.Now()
	if !r.avoided(now) { // or each waiting lease would be logged
		m.cfg.Telemetry.Log.WarnContext(ctx, "a pod-manager grants no leases", "address", r.address, "error", err)
	}
	r.avoid.Store(now.Add(avoidFor).UnixNano())
	m.lookAgain()
}

// markSilent has a replica asked after all others until it answers a probe: it may be gone for good.
func (m *Manager) markSilent(ctx context.Context, r *replica, err error) {
	if !r.silent.Swap(true) {
		m.silences.Add(ctx, 1, rpcclient.SilenceOf("pod-manager"))
		m.cfg.Telemetry.Log.WarnContext(ctx, "a pod-manager does not answer", "address", r.address, "error", err)
	}
	wake(m.probe)
	m.lookAgain()
}

// markAnswered has a replica asked in its turn again.
func (r *replica) markAnswered() {
	if r.silent.Load() { // a warm lease writes nothing that others read
		r.silent.Store(false)
	}
}

// avoided reports whether a replica is asked after all others.
func (r *replica) avoided(now time.Time) bool {
	return r.silent.Load() || r.avoid.Load() > now.UnixNano()
}

// probeSilent probes silent replicas until ctx ends.
func (m *Manager) probeSilent(ctx context.Context) {
	for {
		select {
		case <-m.probe:
		case <-ctx.Done():
			return
		}
		for m.probeAll(ctx) {
			if !retry.Sleep(ctx, probeInterval) {
				return
			}
		}
	}
}

// probeAll probes the replicas that are silent, and reports whether there are any.
func (m *Manager) probeAll(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var probes sync.WaitGroup
	found := false
	for _, r := range m.known.Load().replicas {
		if r.silent.Load() {
			found = true
			probes.Go(func() { r.check(ctx) })
		}
	}
	probes.Wait()
	return found
}

// noPool is an image that has no pool.
const noPool = "-"

// check asks a replica something that its pools answer, in no time: a process whose health service
// alone answers would be silent again with the next lease.
func (r *replica) check(ctx context.Context) {
	_, err := r.ListPools(ctx, &podmanagerv1.ListPoolsRequest{Image: noPool})
	if ctx.Err() == nil && !lease.IsUnanswered(err) {
		r.markAnswered()
	}
}

// wake sends a request to a task, unless one waits already.
func wake(task chan<- struct{}) {
	select {
	case task <- struct{}{}:
	default:
	}
}
