// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// inboxSize is the capacity of the manager's message queue. Senders block while it is full. This is rare, because
// the manager handles a message within microseconds.
const inboxSize = 1024

// Inbox queues messages for the main goroutine of a [Manager], which decides about pods and leases. A message is a
// function that this goroutine calls with its state. An Inbox is created before its Manager, because the Cluster and
// Prober of the Manager send their events to the Inbox.
type Inbox struct {
	messages chan func(*loop)
	ended    chan struct{} // closes when the manager stops
	// relisted signals that the configured minimum numbers of pods changed. Its buffer holds one pending signal. Senders
	// drop further signals, so that they never block.
	relisted chan struct{}
}

// NewInbox returns an empty Inbox.
func NewInbox() *Inbox {
	return &Inbox{
		messages: make(chan func(*loop), inboxSize), ended: make(chan struct{}), relisted: make(chan struct{}, 1),
	}
}

// Handle queues an event for the pools. It blocks while the inbox is full.
func (b *Inbox) Handle(event pool.Event) {
	b.postMessage(func(l *loop) {
		if gone, ok := event.(pool.PodGone); ok {
			l.config.Prober.Forget(gone.Name, gone.UID)
		}
		if failed, ok := event.(pool.CreateFailed); ok {
			l.config.Log.Warn("function pod not created", "pod", failed.Name, "error", failed.Problem.Reason)
		}
		l.handleEvent(event)
	})
}

// postMessage adds a message to the inbox. It does nothing if the manager has stopped.
func (b *Inbox) postMessage(message func(*loop)) {
	select {
	case b.messages <- message:
	case <-b.ended:
	}
}

// sendMessage adds a message to the inbox. It fails if ctx is done or the manager stops while the inbox is full.
func (b *Inbox) sendMessage(ctx context.Context, message func(*loop)) error {
	select {
	case b.messages <- message:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-b.ended:
		return errEnded()
	}
}

// askLoop calls a function in the manager's main goroutine, and returns the function's result. It returns an error if
// ctx is done or the manager stops first.
func askLoop[T any](ctx context.Context, b *Inbox, question func(*loop) T) (answer T, err error) {
	answered := make(chan T, 1)
	if err := b.sendMessage(ctx, func(l *loop) { answered <- question(l) }); err != nil {
		return answer, err
	}
	select {
	case answer := <-answered:
		return answer, nil
	case <-b.ended:
		return answer, errEnded()
	}
}

func errEnded() error {
	return lease.Elsewhere(fault.New(fault.Unavailable, "the pod-manager has stopped"))
}

// Configure changes the settings of the manager, and returns once the change is applied or the manager has stopped. The
// manager's main goroutine must not call it, because Configure would wait for this goroutine forever.
func (b *Inbox) Configure(change func(*Settings)) {
	inForce := make(chan struct{})
	b.postMessage(func(l *loop) {
		change(&l.settings)
		l.listedPods = l.settings.listedPods()
		l.handleEvent(pool.Configured{Config: l.settings.poolConfig()})
		close(inForce)
	})
	select {
	case <-inForce:
	case <-b.ended:
	}
	select {
	case b.relisted <- struct{}{}:
	default: // an earlier signal is pending
	}
}
