// SPDX-License-Identifier: Apache-2.0

package pullsecret

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/krm-function-runner/function-runner/libs/retry"
)

// file is the content of the docker configuration file at a time, or the read error.
type file struct {
	content []byte
	err     error
}

// runLoop reconciles the Secret at the start, after each change of the file, after each call of Then, and once per
// CheckInterval.
func (k *Keeper) runLoop(ctx context.Context, changes <-chan file) {
	next := time.NewTimer(0)
	defer next.Stop()
	backoff := retry.Backoff{First: time.Second, Max: 30 * time.Second}
	for {
		select {
		case <-next.C:
		case <-k.wake:
		case change := <-changes:
			k.recordContent(ctx, change.content, change.err)
		case <-ctx.Done():
			return
		}
		if err := k.attemptSync(ctx); err != nil {
			next.Reset(backoff.Next())
			continue
		}
		next.Reset(k.config.CheckInterval)
		backoff.Reset()
	}
}

// recordContent stores a new content of the file, or the read error. If the file was valid
// before, an invalid file is logged and changes nothing.
func (k *Keeper) recordContent(ctx context.Context, content []byte, err error) {
	if err != nil {
		err = fmt.Errorf("read the docker configuration: %w", err)
	} else {
		content, err = k.parseConfig(ctx, content)
	}
	if err == nil {
		k.content = content
		k.cause = nil
		k.changed = true
		return
	}
	k.cause = err
	if k.content != nil {
		k.config.Log.ErrorContext(ctx, "pull secret not changed, keeping its current content", "error", err)
	}
}

// parseConfig parses a content of the file, and logs warnings.
func (k *Keeper) parseConfig(ctx context.Context, content []byte) ([]byte, error) {
	pullConfig, warnings, err := Parse(content)
	if err != nil {
		return nil, fmt.Errorf("read the docker configuration %s: %w", k.config.Path, err)
	}
	for _, w := range warnings {
		k.config.Log.WarnContext(ctx, "credentials omitted from the pull secret", "file", k.config.Path, "warning", w)
	}
	return pullConfig, nil
}

// attemptSync reconciles the Secret, logs and measures the result, and passes it to the waiting callbacks.
func (k *Keeper) attemptSync(ctx context.Context) error {
	asked := k.takeWaiting()
	err := k.syncSecret(ctx)
	if err != nil {
		err = fmt.Errorf("keep the pull secret %s/%s: %w", k.config.Namespace, k.config.Name, err)
		if ctx.Err() == nil {
			k.config.Log.ErrorContext(ctx, "function pods may lack their credentials", "error", err)
		}
	}
	k.metrics.recordAttempt(ctx, err == nil && k.cause == nil)
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

// takeWaiting removes and returns the waiting callbacks. attemptSync calls it before it reads the Secret: a callback
// that arrives later waits for the next attempt, because the Secret may have changed in between.
func (k *Keeper) takeWaiting() []func(error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	waiting := k.waiting
	k.waiting = nil
	return waiting
}
