// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
	"time"
)

// abandonAfter is how long an output may take to notice the end of its context.
const abandonAfter = time.Second

var errBlocked = errors.New("the output of the audit log does not end: it is abandoned")

// writer uses an output, which may not know contexts: a pipe that is not read, or a file of a server that is gone.
// One that does not return when the log ends is abandoned, with its goroutine.
type writer struct {
	output  Output
	blocked bool
}

// write writes events. It returns soon after the end of ctx.
func (w *writer) write(ctx context.Context, events []Event) error {
	return w.do(ctx, func() error { return w.output.Write(ctx, events) })
}

// close closes the output.
func (w *writer) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	return w.do(ctx, w.output.Close)
}

func (w *writer) do(ctx context.Context, act func() error) error {
	if w.blocked {
		return errBlocked
	}
	done := make(chan error, 1)
	go func() { done <- act() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(abandonAfter):
		w.blocked = true
		return errBlocked
	}
}
