// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/krm-function-runner/function-runner/libs/fault"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// waiter is the manager's connection to a caller that waits for a lease. It passes reports, and finally the answer, to
// the caller.
type waiter struct {
	// reports contains the latest unread report on the wait. A new report replaces it, because the capacity is 1.
	reports  chan pool.Waiting
	answered chan answer
}

// answer is the manager's response to a request for a lease. It contains either a grant or an error.
type answer struct {
	grant pool.Grant
	// maxTime is the function's limit for the duration of an evaluation. Zero means no limit.
	maxTime time.Duration
	err     error
}

// replaceReport stores a report for the caller, and discards an earlier unread report. Only the manager's main
// goroutine stores reports. After the discard, the channel therefore has room, and replaceReport never blocks.
func (w *waiter) replaceReport(r pool.Waiting) {
	select {
	case <-w.reports:
	default:
	}
	w.reports <- r
}

// Lease implements lease.Manager. It waits for a pod that runs the image, and returns a lease on the pod. During the
// wait, it reports the cause of the wait to the callback.
func (m *Manager) Lease(ctx context.Context, open *lease.Open, waiting func(*lease.Waiting)) (lease.Lease, error) {
	begin := time.Now()
	m.metrics.waiting.Add(1)
	defer m.metrics.waiting.Add(-1)
	if err := m.awaitSync(ctx, waiting); err != nil {
		return nil, err
	}
	unsynced := time.Since(begin)
	if open.GetTagConstraint() != "" {
		return nil, fault.New(fault.Invalid,
			"lease a pod of %s: tag constraints are not supported here: request a tag", open.GetImage())
	}
	image, err := m.resolveImage(ctx, open.GetImage(), waiting)
	if err != nil {
		return nil, err
	}
	resolving := time.Since(begin) - unsynced
	f := pool.Function{Reference: image.Reference, Digest: image.Digest}
	id := pool.LeaseID(m.ids.Add(1))
	w := &waiter{reports: make(chan pool.Waiting, 1), answered: make(chan answer, 1)}
	err = m.sendMessage(ctx, func(l *loop) {
		l.waiters[id] = w
		l.images[f] = image
		l.handleEvent(pool.LeaseRequested{Lease: id, Function: f, Avoid: open.GetAvoidPods(), Tried: open.GetTried()})
	})
	if err != nil {
		return nil, err
	}
	got, err := m.awaitAnswer(ctx, id, w, waiting)
	if err != nil {
		return nil, err
	}
	return &grantedLease{manager: m, id: id, granted: m.grantedMessage(got, unsynced, resolving)}, nil
}

// awaitAnswer waits for the manager's answer to a request for a lease. It passes each report on the wait to the
// callback.
func (m *Manager) awaitAnswer(
	ctx context.Context, id pool.LeaseID, w *waiter, waiting func(*lease.Waiting),
) (answer, error) {
	for {
		select {
		case a := <-w.answered:
			return a, a.err
		case r := <-w.reports:
			position := int32(min(r.Position, math.MaxInt32)) //nolint:gosec // bounded by the line itself
			waiting(&lease.Waiting{Phase: r.Phase, Reason: r.Reason, Position: position, Pod: r.Pod})
		case <-ctx.Done():
			m.endLease(pool.LeaseEnded{Lease: id}) // also ends a lease that was granted concurrently
			return answer{}, ctx.Err()
		case <-m.ended:
			return answer{}, errEnded()
		}
	}
}

// endLease ends a granted lease, or cancels a waiting lease.
func (m *Manager) endLease(ended pool.LeaseEnded) {
	m.postMessage(func(l *loop) {
		delete(l.waiters, ended.Lease)
		l.handleEvent(ended)
	})
}

// slowResolve is the time after which a caller is informed that the lookup of an image takes long.
const slowResolve = 20 * time.Millisecond

// resolveImage looks up the digest and properties of an image. If the lookup takes longer than 20 ms (slowResolve), it
// informs the caller through the callback.
func (m *Manager) resolveImage(
	ctx context.Context, image string, waiting func(*lease.Waiting),
) (podspec.Function, error) {
	req := &imageresolverv1.ResolveImageRequest{Image: image}
	type answer struct {
		image *imageresolverv1.ResolveImageResponse
		err   error
	}
	answered := make(chan answer, 1)
	go func() { // ctx limits its duration
		resolved, err := m.config.Images.ResolveImage(ctx, req)
		answered <- answer{resolved, err}
	}()
	slow := time.NewTimer(slowResolve)
	defer slow.Stop()
	for {
		select {
		case a := <-answered:
			if a.err != nil {
				return podspec.Function{}, fmt.Errorf("look up the image %s: %w", image, a.err)
			}
			return functionOf(a.image), nil
		case <-slow.C:
			reason := "looking up " + image + " in its registry"
			waiting(&lease.Waiting{Phase: pool.PhaseResolving, Reason: reason})
			m.postMessage(func(l *loop) { l.lookUp(image, 1) })
			defer m.postMessage(func(l *loop) { l.lookUp(image, -1) })
		}
	}
}

// functionOf returns the image properties that new pods require, from the image-resolver's response.
func functionOf(image *imageresolverv1.ResolveImageResponse) podspec.Function {
	return podspec.Function{
		Reference: image.GetReference(), Digest: image.GetDigest(), Command: image.GetCommand(),
		Architecture: image.GetPlatform().GetArchitecture(), User: image.GetUser(), PullSecret: image.GetPullCredentials(),
	}
}

// grantedMessage converts a grant to an API message, with the phases of the caller's wait. These phases include the
// wait for the list of existing pods (unsynced) and the lookup of the image (resolving).
func (m *Manager) grantedMessage(got answer, unsynced, resolving time.Duration) *lease.Granted {
	g := got.grant
	granted := &lease.Granted{
		Address: g.Address, Pod: g.Pod, Namespace: m.config.Namespace, PodUid: g.UID,
		Reference: g.Function.Reference, Digest: g.Function.Digest, ColdStart: g.Cold,
		MaxMessageBytes: int64(m.config.MaxMessageBytes), Owner: m.config.OwnerOf(g.Function.Reference),
	}
	if g.Identity != (pool.Identity{}) {
		granted.Identity = &podmanagerv1.PodIdentity{Id: g.Identity.ID, Secret: g.Identity.Secret}
	}
	if g.ByTag { // the node may run an image with another digest
		granted.Digest = ""
	}
	if got.maxTime > 0 {
		granted.MaxEvaluationTime = durationpb.New(got.maxTime)
	}
	all := []pool.PhaseDuration{{Phase: pool.PhaseResolving, Duration: resolving}}
	if unsynced >= time.Millisecond {
		all = slices.Insert(all, 0, pool.PhaseDuration{Phase: pool.PhaseQueued, Duration: unsynced})
	}
	for _, p := range append(all, g.Phases...) {
		spent := &podmanagerv1.PhaseDuration{Phase: p.Phase, Duration: durationpb.New(p.Duration)}
		granted.Phases = append(granted.Phases, spent)
	}
	return granted
}

type grantedLease struct {
	manager *Manager
	id      pool.LeaseID
	granted *lease.Granted
	once    sync.Once
}

// Granted implements lease.Lease.
func (h *grantedLease) Granted() *lease.Granted { return h.granted }

// Finish implements lease.Lease.
func (h *grantedLease) Finish(outcome lease.Outcome, reason string) {
	h.once.Do(func() {
		ended := pool.LeaseEnded{Lease: h.id, Abandoned: outcome == lease.Abandoned}
		if outcome == lease.PodBroken {
			ended.Broken = cmp.Or(reason, "its caller reported it without a reason")
		}
		h.manager.endLease(ended)
	})
}
