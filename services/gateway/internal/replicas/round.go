// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/lease"
)

// firstAnswerTimeout is how long a replica may take for the first message on a lease's stream, until
// another one is asked beside it. An answer takes a millisecond, and up to half a second on a
// busy node.
const firstAnswerTimeout = time.Second

// round asks replicas for one lease: the next one when one has no lease, or stays silent. It ends with
// the first one that answers.
type round struct {
	manager *Manager
	open    *lease.Open
	left    []*replica // to ask, in their order
	asked   []*asking  // without an end
	events  chan event
	silence *time.Timer
	err     error // of the last replica that had no lease
}

// asking is one replica that is being asked.
type asking struct {
	replica *replica
	cancel  context.CancelFunc
	heard   bool // it has answered
}

// event is a message of a replica, or the end of its stream.
type event struct {
	from    *asking
	waiting *lease.Waiting // nil at the end
	held    lease.Lease
	err     error
}

// run returns the lease, or the error of the replica that answered; that of the last one if none did.
func (r *round) run(ctx context.Context, waiting func(*lease.Waiting)) (lease.Lease, error) {
	r.silence = time.NewTimer(firstAnswerTimeout)
	defer r.silence.Stop()
	defer r.stay(nil)
	for r.ask(ctx); len(r.asked) > 0; {
		select {
		case e := <-r.events:
			switch {
			case !slices.Contains(r.asked, e.from):
				e.giveBack()
			case e.waiting != nil:
				r.choose(e.from)
				waiting(e.waiting)
			case lease.IsElsewhere(e.err):
				r.lost(ctx, e)
			default:
				e.from.replica.markAnswered()
				return e.held, e.err
			}
		case <-r.silence.C:
			r.hedge(ctx)
		case <-ctx.Done():
			return nil, fault.New(fault.Of(ctx.Err()), "wait for the pod-manager: %w", context.Cause(ctx))
		}
	}
	return nil, r.err
}

// ask asks the next replica, if there is one.
func (r *round) ask(ctx context.Context) {
	if len(r.left) == 0 {
		return
	}
	a := &asking{replica: r.left[0]}
	r.left = r.left[1:]
	ctx, a.cancel = context.WithCancel(ctx)
	r.asked = append(r.asked, a)
	r.silence.Reset(firstAnswerTimeout)
	go r.follow(ctx, a, r.open)
}

// follow passes on what a replica answers. It ends with ctx.
func (r *round) follow(ctx context.Context, a *asking, open *lease.Open) {
	send := func(e event) {
		select {
		case r.events <- e:
		case <-ctx.Done():
			e.giveBack()
		}
	}
	held, err := a.replica.Lease(ctx, open, func(w *lease.Waiting) { send(event{from: a, waiting: w}) })
	send(event{from: a, held: held, err: err})
}

// giveBack ends a lease that comes too late.
func (e event) giveBack() {
	if e.waiting == nil && e.err == nil {
		e.held.Finish(lease.Done, "another replica has answered before")
	}
}

// choose stays with a replica that has answered.
func (r *round) choose(a *asking) {
	if a.heard {
		return
	}
	a.heard = true
	a.replica.markAnswered()
	r.silence.Stop()
	r.stay(a)
}

// stay ends the streams with all replicas but one, or with all.
func (r *round) stay(with *asking) {
	for _, a := range r.asked {
		if a != with {
			a.cancel()
		}
	}
	r.asked = slices.DeleteFunc(r.asked, func(a *asking) bool { return a != with })
}

// lost asks the next replica after one that granted no lease.
func (r *round) lost(ctx context.Context, e event) {
	e.from.cancel()
	r.asked = slices.DeleteFunc(r.asked, func(a *asking) bool { return a == e.from })
	r.err = e.err
	r.addTried(e.from.replica.address)
	if owner := lease.OwnerOf(e.err); owner != "" { // it works, but does not own the function
		e.from.replica.markAnswered()
		r.left = ownerFirst(r.left, owner)
	} else {
		r.manager.markFailed(ctx, e.from.replica, e.err)
	}
	r.ask(ctx)
}

// addTried adds addresses to the request, so that the next replicas do not name them as the owner.
func (r *round) addTried(addresses ...string) {
	if len(addresses) > 0 {
		r.open = proto.CloneOf(r.open) // streams and the caller have the one before
		r.open.Tried = append(r.open.Tried, addresses...)
	}
}

// hedge asks one more replica, since no answer has come.
func (r *round) hedge(ctx context.Context) {
	for _, a := range r.asked {
		r.manager.markSilent(ctx, a.replica, errSilent)
		r.addTried(a.replica.address)
	}
	r.ask(ctx)
}
