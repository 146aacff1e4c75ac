// SPDX-License-Identifier: Apache-2.0

package pullsecret

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/krm-function-runner/function-runner/libs/retry"
)

// file is a version of the docker configuration file: its content, or the error of reading it.
type file struct {
	content []byte
	err     error
}

// runLoop makes the pull secret equal to the docker configuration file: at the start, after each change of the
// file, after each call of [Keeper.Then], and once per CheckInterval.
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

// recordContent stores the new content of the docker configuration file, or the error of reading it. If the file
// was valid before, an invalid file is only logged, and the previous content stays in use.
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

// parseConfig converts the docker configuration file to the content of the pull secret, and logs warnings.
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

// attemptSync makes the pull secret equal to the docker configuration file. It records the result in logs and
// metrics, and passes it to the callbacks that wait for it, see [Keeper.Then].
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

// takeWaiting removes and returns the callbacks of [Keeper.Then]. attemptSync calls it before it reads the Secret.
// A later callback waits for the next attempt, because the Secret may have changed in between.
func (k *Keeper) takeWaiting() []func(error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	waiting := k.waiting
	k.waiting = nil
	return waiting
}
