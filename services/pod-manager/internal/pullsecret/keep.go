// SPDX-License-Identifier: Apache-2.0

package pullsecret

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/krm-function-runner/function-runner/libs/retry"
)

// file is a content of the file, or why it cannot be read.
type file struct {
	content []byte
	err     error
}

// keep reconciles the Secret at the start, when the file changes, when a pod waits for it,
// and once per CheckInterval.
func (k *Keeper) keep(ctx context.Context, changes <-chan file) {
	next := time.NewTimer(0)
	defer next.Stop()
	backoff := retry.Backoff{First: time.Second, Max: 30 * time.Second}
	for {
		select {
		case <-next.C:
		case <-k.wake:
		case change := <-changes:
			k.read(ctx, change.content, change.err)
		case <-ctx.Done():
			return
		}
		if err := k.attempt(ctx); err != nil {
			next.Reset(backoff.Next())
			continue
		}
		next.Reset(k.config.CheckInterval)
		backoff.Reset()
	}
}

// read records a content of the file, or why it cannot be read. A broken file changes nothing
// if there was a good one before.
func (k *Keeper) read(ctx context.Context, content []byte, err error) {
	if err != nil {
		err = fmt.Errorf("read the docker configuration: %w", err)
	} else {
		content, err = k.parse(ctx, content)
	}
	if err == nil {
		k.content, k.cause, k.changed = content, nil, true
		return
	}
	k.cause = err
	if k.content != nil {
		k.config.Log.ErrorContext(ctx, "pull secret not changed: what was last read stays in use", "error", err)
	}
}

// parse reads a content of the file.
func (k *Keeper) parse(ctx context.Context, content []byte) ([]byte, error) {
	pullConfig, warnings, err := Parse(content)
	if err != nil {
		return nil, fmt.Errorf("read the docker configuration %s: %w", k.config.Path, err)
	}
	for _, w := range warnings {
		k.config.Log.WarnContext(ctx, "credentials are left out of the pull secret", "file", k.config.Path, "warning", w)
	}
	return pullConfig, nil
}

// attempt reconciles the Secret, and calls the waiting callbacks with the outcome.
func (k *Keeper) attempt(ctx context.Context) error {
	asked := k.take()
	err := k.sync(ctx)
	if err != nil {
		err = fmt.Errorf("keep the pull secret %s/%s: %w", k.config.Namespace, k.config.Name, err)
		if ctx.Err() == nil {
			k.config.Log.ErrorContext(ctx, "function pods may lack their credentials", "error", err)
		}
	}
	k.metrics.attempted(ctx, err == nil && k.cause == nil)
	k.written = k.written || err == nil
	answer := err
	if _, unseen := errors.AsType[unseenError](err); unseen && k.written {
		answer = nil
	}
	for _, do := range asked {
		do(answer)
	}
	return err
}

// take removes and returns the callbacks that wait before an attempt. A callback added while it
// runs waits for the next attempt, since the state may have changed in between.
func (k *Keeper) take() []func(error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	waiting := k.waiting
	k.waiting = nil
	return waiting
}
