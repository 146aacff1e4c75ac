// SPDX-License-Identifier: Apache-2.0

// Package audit writes one event for each evaluation: who had what evaluated, whether the policy allowed it,
// and how it ended. Evaluations do not wait for the output: events are queued, and a setting says what
// happens when the queue is full.
package audit

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/retry"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

// What happens when the queue is full.
const (
	// Drop drops the event, and counts it.
	Drop = "drop"
	// Reject rejects evaluations before they begin, so that each one that runs has its event.
	Reject = "reject"
)

const (
	// maxBatch is how many events an output gets at a time.
	maxBatch = 512
	// retryEvery is the time between two attempts to write, and retryAfter the hint for rejected callers.
	retryEvery = time.Second
	retryAfter = 5 * time.Second
	// closeTimeout is how long events may take to be written when the program ends.
	closeTimeout = 5 * time.Second
)

// Output writes events. It is used by one goroutine at a time.
type Output interface {
	// Write writes events in their order. After an error it may be called with them again.
	Write(ctx context.Context, events []Event) error
	Close() error
}

// Config is what a Log works with.
type Config struct {
	Output Output
	// Queue is how many events may be queued, and WhenFull what happens when they are: [Drop] or [Reject].
	Queue     int
	WhenFull  string
	Telemetry *telemetry.Telemetry
}

// Log is the audit log. A nil Log records nothing.
type Log struct {
	output writer
	reject bool
	log    *slog.Logger
	// events are queued. Each admitted evaluation has a slot, if evaluations are rejected when no slot is free.
	events  chan Event
	slots   chan struct{}
	metrics *metrics

	mu    sync.RWMutex // each recording holds it for reading
	ended bool         // nothing is queued any more
}

// New returns a log. Its Run has to run while it is used.
func New(cfg Config) (*Log, error) {
	l := &Log{
		output: writer{output: cfg.Output}, reject: cfg.WhenFull == Reject, log: cfg.Telemetry.Log,
		events: make(chan Event, cfg.Queue), slots: make(chan struct{}, cfg.Queue),
	}
	var err error
	l.metrics, err = newMetrics(cfg.Telemetry.Meters, func() int64 { return int64(len(l.events)) })
	return l, err
}

// Admit returns an error if the evaluation must not begin, because its event could not be queued. After nil,
// the caller calls Record.
func (l *Log) Admit() error {
	if l == nil || !l.reject {
		return nil
	}
	select {
	case l.slots <- struct{}{}:
		return nil
	default:
		return fault.WithRetryAfter(fault.New(fault.Unavailable,
			"the queue of the audit log is full: try again later; the gateway's log has the cause"),
			retryAfter)
	}
}

// Record queues the event of an evaluation that was admitted. An event that cannot be queued is counted, also after
// the end of Run.
func (l *Log) Record(ctx context.Context, e Event) {
	if l == nil {
		return
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.ended && l.reject {
		return // the slot of this event was counted at the end
	}
	events := l.events
	if l.ended {
		events = nil
	}
	select {
	case events <- e:
	default: // with slots there is always capacity
		l.metrics.count(ctx, "dropped", 1)
	}
}

// Run writes events until ctx ends, and then the queued ones, for a bounded time. It closes the output.
func (l *Log) Run(ctx context.Context) error {
	l.metrics.begin(ctx)
	writing, cancel := outliving(ctx, closeTimeout)
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return l.finish(writing)
		case e := <-l.events:
			l.write(writing, l.batch(e))
		}
	}
}

// outliving returns a context that ends d after ctx.
func outliving(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(d, cancel)
		context.AfterFunc(out, func() { timer.Stop() })
	})
	return out, func() {
		stop()
		cancel()
	}
}

// batch returns the event with the queued ones behind it, up to maxBatch.
func (l *Log) batch(first Event) []Event {
	batch := []Event{first}
	for len(batch) < maxBatch {
		select {
		case e := <-l.events:
			batch = append(batch, e)
		default:
			return batch
		}
	}
	return batch
}

// write writes events. If evaluations are rejected when no slot is free, it tries again until they are
// written or ctx ends; otherwise, events that cannot be written are counted.
func (l *Log) write(ctx context.Context, batch []Event) {
	err := l.output.write(ctx, batch)
	for logged := false; err != nil; err = l.output.write(ctx, batch) {
		if !logged {
			l.log.ErrorContext(ctx, "audit events not written", "events", len(batch), "error", err)
			logged = true
		}
		if !l.reject || !retry.Sleep(ctx, retryEvery) {
			l.metrics.count(ctx, "failed", len(batch))
			l.release(len(batch))
			return
		}
	}
	l.metrics.count(ctx, "written", len(batch))
	l.release(len(batch))
}

// release gives slots back.
func (l *Log) release(n int) {
	if !l.reject {
		return
	}
	for range n {
		<-l.slots
	}
}

// finish writes what is queued until ctx ends, and closes the output. Evaluations that were admitted and have not
// ended yet are waited for if each has a slot.
func (l *Log) finish(ctx context.Context) error {
	for !l.end(ctx.Err() != nil) {
		select {
		case e := <-l.events:
			l.write(ctx, l.batch(e))
		case <-ctx.Done():
		}
	}
	if left := l.outstanding(); left > 0 {
		l.metrics.count(ctx, "failed", left)
		l.log.ErrorContext(ctx, "audit events not written", "events", left, "error", ctx.Err())
	}
	if err := l.output.close(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("close the audit log: %w", err)
	}
	return nil
}

// outstanding returns how many events are queued, or will be for evaluations that were admitted.
func (l *Log) outstanding() int { return max(len(l.events), len(l.slots)) }

// end has no event queued any more if none is outstanding, or at once, and reports whether it did.
func (l *Log) end(now bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = now || l.outstanding() == 0
	return l.ended
}
