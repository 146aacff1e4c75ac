// SPDX-License-Identifier: Apache-2.0

// Package pullsecret copies a docker configuration file into the pull secret of function pods, and keeps the two
// equal. It delays the creation of pods that require the pull secret until the pull secret exists.
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

// Config configures a Keeper.
type Config struct {
	// Path is the path of the docker configuration file. The file may be missing at the start, and may change.
	Path string
	// Secrets is the client for the pods' namespace. It is used only to get, create and update the pull secret,
	// because Porch's Role permits neither list nor watch.
	Secrets corev1client.SecretInterface
	// Namespace and Name identify the pull secret.
	Namespace, Name string
	// CheckInterval is the interval at which the pull secret is compared with the file.
	CheckInterval time.Duration
	Log           *slog.Logger
	Meter         metric.Meter
}

// Keeper keeps the pull secret equal to the docker configuration file. Create it with [New], and run [Keeper.Run]
// in a goroutine, because nothing is copied without it.
type Keeper struct {
	config  Config
	metrics *metrics
	wake    chan struct{} // has capacity 1

	mu      sync.Mutex
	waiting []func(error) // callbacks for the next attempt

	// Only Run uses the fields below.
	content []byte // content for the Secret. It is nil without a valid file
	cause   error  // error of the current file, or nil
	changed bool   // true if the file changed since the last write
	written bool   // true if the Secret was up to date at least once
}

// New returns a keeper. The keeper sends no requests before [Keeper.Run] is called.
func New(config Config) (*Keeper, error) {
	metrics, err := newMetrics(config.Meter)
	if err != nil {
		return nil, err
	}
	return &Keeper{config: config, metrics: metrics, wake: make(chan struct{}, 1)}, nil
}

// Then requests a check of the pull secret, which restores a deleted or changed Secret, and calls the function do
// with the result. It does not block. A nil error means that the caller may create pods that require the pull
// secret: it is up to date, or was written before and cannot be read now. do is not called after Run has returned.
// The number of waiting callbacks is bounded by the number of the caller's pods.
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
