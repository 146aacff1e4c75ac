// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// inboxSize is the maximum number of messages in the inbox. The loop handles each within microseconds; senders wait
// while the inbox is full.
const inboxSize = 1024

// Inbox holds the messages for a [Manager]'s loop, which owns all state and runs the functions in the messages. An
// Inbox exists before its manager, for the parts of the manager that send events.
type Inbox struct {
	messages chan func(*loop)
	ended    chan struct{} // closed after the manager has stopped
	// relisted signals changed listed functions. Its capacity is 1.
	relisted chan struct{}
}

// NewInbox returns an empty Inbox.
func NewInbox() *Inbox {
	return &Inbox{
		messages: make(chan func(*loop), inboxSize), ended: make(chan struct{}), relisted: make(chan struct{}, 1),
	}
}

// Handle sends an event to the loop. It waits while the inbox is full.
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

// postMessage runs a message in the loop, unless the manager has stopped.
func (b *Inbox) postMessage(message func(*loop)) {
	select {
	case b.messages <- message:
	case <-b.ended:
	}
}

// sendMessage runs a message in the loop, unless ctx or the manager stops before.
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

// askLoop returns the result of a query in the loop, unless ctx or the manager stops before.
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

// Configure replaces the settings. It returns after the loop has applied them or stopped, so the loop must not wait
// for its caller.
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
