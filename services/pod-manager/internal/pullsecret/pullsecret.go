// SPDX-License-Identifier: Apache-2.0

// Package pullsecret keeps the pull secret of function pods equal to a docker configuration
// file, and delays pods that need it until it exists.
package pullsecret

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/krm-function-runner/function-runner/libs/filewatch"
)

// Config is what a Keeper needs.
type Config struct {
	// Path is the docker configuration file. It may come later, and may change.
	Path string
	// Secrets is the client for the pods' namespace. They are read, created and updated,
	// one at a time: Porch's Role allows no list and no watch.
	Secrets corev1client.SecretInterface
	// Namespace and Name are the pull secret's.
	Namespace, Name string
	// CheckInterval is the time between two checks that the Secret still exists.
	CheckInterval time.Duration
	Log           *slog.Logger
	Meter         metric.Meter
}

// Keeper keeps the pull secret. Use [New]; Run has to run while it is used.
type Keeper struct {
	config  Config
	metrics *metrics
	wake    chan struct{} // has capacity 1

	mu      sync.Mutex
	waiting []func(error) // for the next attempt

	// These belong to Run.
	content []byte // what the Secret has to hold; nil if there is no good file
	cause   error  // why the file as it is now is not used
	changed bool   // the file has changed since it was last written
	written bool   // the Secret was up to date at least once
}

// New returns a keeper. It reads and writes nothing yet.
func New(config Config) (*Keeper, error) {
	metrics, err := newMetrics(config.Meter)
	if err != nil {
		return nil, err
	}
	return &Keeper{config: config, metrics: metrics, wake: make(chan struct{}, 1)}, nil
}

// Then calls do once pods that need the pull secret may be created: after a check, which
// restores a deleted or changed Secret, with the error of that. If the Secret cannot be read
// now but was written before, do gets no error. Then does not block; do is not called after
// Run has ended. The number of waiting callbacks is bounded by the pods that the caller makes.
func (k *Keeper) Then(do func(err error)) {
	k.mu.Lock()
	k.waiting = append(k.waiting, do)
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// Run keeps the pull secret until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	content, err := os.ReadFile(k.config.Path)
	k.read(ctx, content, err)
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
	k.keep(ctx, changes)
	<-ended
	return nil
}
