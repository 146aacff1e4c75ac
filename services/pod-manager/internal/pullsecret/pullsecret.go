// SPDX-License-Identifier: Apache-2.0

// Package pullsecret copies registry credentials from a docker configuration file to the pull secret, a Secret for
// pulling images, and keeps it up to date. Pods that require the pull secret are created only once it exists.
package pullsecret

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/krm-function-runner/function-runner/libs/filewatch"
	"github.com/krm-function-runner/function-runner/libs/retry"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

// Config configures a Keeper.
type Config struct {
	// Path is the path of the docker configuration file. The file may be missing at the start, and may change.
	Path string
	// Secrets is the client for Secrets in the pods' namespace. The keeper only gets, creates and updates the pull secret,
	// because Porch's Role permits neither list nor watch.
	Secrets corev1client.SecretInterface
	// Namespace and Name identify the pull secret.
	Namespace, Name string
	// CheckInterval is the interval at which the pull secret is compared with the file.
	CheckInterval time.Duration
	Log           *slog.Logger
	Meter         metric.Meter
}

// Keeper keeps the pull secret equal to the docker configuration file. Create it with [New]. It copies nothing until
// [Keeper.Run] runs in a goroutine.
type Keeper struct {
	config Config
	writes metric.Int64Counter // writes of the Secret
	inStep metric.Int64Gauge   // 1 while the Secret matches the file
	wake   chan struct{}       // wakes Run, has capacity 1

	mu      sync.Mutex
	waiting []func(error) // callbacks for the next attempt

	// Only Run uses the fields below.
	content []byte // content for the Secret, or nil without a valid file
	cause   error  // error of the current file, or nil
	changed bool   // true if the file changed since the last write
	written bool   // true if the Secret was up to date at least once
	// differsSince is the time when the Secret was first found to differ from the file. It is zero while both are equal.
	differsSince time.Time
	repaired     bool // true if the content was written because the Secret differed for too long
}

// New returns a keeper. The keeper sends no requests before [Keeper.Run] is called.
func New(config Config) *Keeper {
	k := &Keeper{config: config, wake: make(chan struct{}, 1)}
	k.writes = telemetry.Must(config.Meter.Int64Counter("fn.pull_secret.writes",
		metric.WithDescription("Writes of the pull secret. Labels: outcome.")))
	k.inStep = telemetry.Must(config.Meter.Int64Gauge("fn.pull_secret.in_step",
		metric.WithDescription(
			"1 while the pull secret matches its file, 0 while it or the file cannot be read or written.")))
	return k
}

// Then checks the pull secret in the background, and calls do with the result. If necessary, it first restores the
// secret. If err is nil, the caller may create pods that require the pull secret. err is also nil if the API server is
// unreachable, but the Secret was up to date before. After Run has returned, Then never calls do. Callers must limit
// the number of their calls, for example by the number of their pods.
func (k *Keeper) Then(do func(err error)) {
	k.mu.Lock()
	k.waiting = append(k.waiting, do)
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// Run maintains the pull secret until ctx is cancelled.
func (k *Keeper) Run(ctx context.Context) error {
	content, err := os.ReadFile(k.config.Path)
	k.recordContent(ctx, content, err)
	changes := make(chan file)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		filewatch.Watch(ctx, k.config.Log, k.config.Path, content, func(content []byte, err error) {
			select {
			case changes <- file{content, err}:
			case <-ctx.Done():
			}
		})
	}()
	k.runLoop(ctx, changes)
	<-ended
	return nil
}

// file is the result of reading the docker configuration file: either its content or an error.
type file struct {
	content []byte
	err     error
}

// runLoop updates the pull secret at the start, after each change of the file, after each call of [Keeper.Then],
// and once per CheckInterval.
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

// recordContent stores the new content of the docker configuration file, or the error of a failed read. If the file
// becomes invalid, it logs the error, and the previous content stays in use.
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
		k.repaired = false
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

// attemptSync writes the docker configuration file to the pull secret, if they differ. It records the result in logs
// and metrics. It also calls the functions that were passed to [Keeper.Then] with the result.
func (k *Keeper) attemptSync(ctx context.Context) error {
	asked := k.takeWaiting()
	err := k.syncSecret(ctx)
	if err != nil {
		err = fmt.Errorf("keep the pull secret %s/%s: %w", k.config.Namespace, k.config.Name, err)
		if ctx.Err() == nil {
			k.config.Log.ErrorContext(ctx, "function pods may lack their credentials", "error", err)
		}
	}
	k.inStep.Record(ctx, telemetry.Bool(err == nil && k.cause == nil))
	k.written = k.written || err == nil
	answer := err
	if request, sent := errors.AsType[requestError](err); sent && request.unseen && k.written {
		answer = nil
	}
	for _, do := range asked {
		do(answer)
	}
	return err
}

// takeWaiting removes and returns the callbacks of [Keeper.Then]. It must be called before the Secret is read. Later
// callbacks wait for the next attempt, because the Secret may have changed between the read and their call.
func (k *Keeper) takeWaiting() []func(error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	waiting := k.waiting
	k.waiting = nil
	return waiting
}
