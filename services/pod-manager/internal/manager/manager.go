// SPDX-License-Identifier: Apache-2.0

// Package manager grants leases on function pods. A lease permits a caller to run an evaluation in a pod. The package
// passes requests and events to the pools, which decide. It passes the pools' actions to the cluster and the prober.
package manager

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"golang.org/x/sync/errgroup"

	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// Images looks up the digests and properties of images.
type Images interface {
	// ResolveImage returns the digest and properties of an image. Callers can get the class of its errors with fault.Of,
	// and must not modify the response.
	ResolveImage(
		ctx context.Context, req *imageresolverv1.ResolveImageRequest,
	) (*imageresolverv1.ResolveImageResponse, error)
}

// Cluster creates, deletes and updates pods in Kubernetes in the background. It passes results to [Inbox.Handle].
type Cluster interface {
	Create(action pool.Create, what podspec.Workload)
	Delete(action pool.Delete)
	Extend(action pool.Extend)
}

// Prober checks the health of pods in the background. It passes the results to [Inbox.Handle].
type Prober interface {
	Probe(action pool.Probe)
	// Forget cancels the probe of a pod. The UID distinguishes the pod from a later pod with the same name.
	Forget(pod, uid string)
}

// Config configures a Manager.
type Config struct {
	// Inbox receives events and settings, even before the manager is created.
	Inbox   *Inbox
	Images  Images
	Cluster Cluster
	Prober  Prober
	// Synced closes once this replica knows all existing pods. Requests for leases wait for it.
	Synced <-chan struct{}
	// Obstacle returns the error that currently delays Synced, or nil. Leases fail at once after a [fault.Precondition]
	// error, because only a user can remove its cause.
	Obstacle func() error
	// OwnerOf returns the address of the replica that owns an image's function, or "" if this replica owns it.
	OwnerOf func(image string) string
	// Problems returns the reasons that replicas cannot own functions, as sentences for users. It may be nil.
	Problems func() []string
	// StandDown hands over functions to peers, because function pods do not answer this replica. The Manager passes an
	// empty reason once pods answer again. StandDown must not block.
	StandDown func(reason string)
	// Settings are the initial settings.
	Settings Settings
	// Replica is this replica's name, and Namespace the namespace of function pods. Both are only shown to users.
	Replica, Namespace string
	// MaxMessageBytes is the maximum size of requests and responses in bytes. Callers receive it with each lease.
	MaxMessageBytes int
	// Now returns monotonic time.
	Now   func() time.Time
	Log   *slog.Logger
	Meter metric.Meter
}

// Manager grants leases on function pods while [Manager.Run] runs. It implements [lease.Manager].
type Manager struct {
	*Inbox
	config  Config
	ids     atomic.Uint64
	metrics *metrics
}

var _ lease.Manager = (*Manager)(nil)

// New returns a manager without pods.
func New(config Config) *Manager {
	return &Manager{Inbox: config.Inbox, config: config, metrics: newMetrics(config.Meter)}
}

// tickInterval is the interval at which the pools check their timeouts.
const tickInterval = time.Second

// Run answers requests for leases until ctx is done. Waiting requests then fail.
func (m *Manager) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var lookups errgroup.Group
	lookups.Go(func() error { m.keepMinimum(ctx); return nil })
	defer func() { _ = lookups.Wait() }() // the lookups return no errors
	defer close(m.ended)
	defer cancel()
	l := newLoop(m.config, m.metrics)
	l.lookUpImage = func(image string, found func(*loop, podspec.Function, error)) {
		lookups.Go(func() error {
			resolved, err := m.config.Images.ResolveImage(ctx, &imageresolverv1.ResolveImageRequest{Image: image})
			m.postMessage(func(l *loop) { found(l, functionOf(resolved), err) })
			return nil
		})
	}
	l.count = func(counter metric.Int64Counter, reason string) {
		counter.Add(ctx, 1, metric.WithAttributes(attribute.String("reason", reason)))
	}
	ticker := time.NewTicker(tickInterval)
	defer ticker.Stop()
	for {
		select {
		case message := <-m.messages:
			message(l)
		case <-ticker.C:
			l.handleEvent(pool.Tick{})
			l.countPods()
		case <-ctx.Done():
			return nil // closing m.ended rejects waiting leases
		}
	}
}
