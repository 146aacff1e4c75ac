// SPDX-License-Identifier: Apache-2.0

// Package manager grants leases on function pods. It passes requests and events to the pools, answers callers, and
// passes the pools' actions to the cluster and the prober.
package manager

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"
	"golang.org/x/sync/errgroup"

	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// Images resolves images.
type Images interface {
	// ResolveImage returns errors with fault classes. Callers must not change the answer.
	ResolveImage(
		ctx context.Context, req *imageresolverv1.ResolveImageRequest,
	) (*imageresolverv1.ResolveImageResponse, error)
}

// Cluster carries out the pools' actions on pods in the background. It passes the results to [Inbox.Handle].
type Cluster interface {
	Create(action pool.Create, what podspec.Workload)
	Delete(action pool.Delete)
	Extend(action pool.Extend)
}

// Prober probes pods in the background. It passes the results to [Inbox.Handle].
type Prober interface {
	Probe(action pool.Probe)
	// Forget cancels the probe of a deleted pod. It leaves the probe of a new pod with the same name alone.
	Forget(pod, uid string)
}

// Config configures a Manager.
type Config struct {
	// Inbox receives events and settings, even before the manager exists.
	Inbox   *Inbox
	Images  Images
	Cluster Cluster
	Prober  Prober
	// Synced closes once the pools have received all existing pods.
	Synced <-chan struct{}
	// Obstacle returns the error because of which Synced has not closed yet, or nil. An error of class
	// [fault.Precondition] lasts until a user changes something.
	Obstacle func() error
	// OwnerOf returns the address of the replica that owns an image's function. It is empty for this replica. It may be
	// nil.
	OwnerOf func(image string) string
	// StandDown makes this replica own no functions, for a reason, as long as other replicas can own them. An empty
	// reason makes this replica own functions again. It must not block. It is nil if there are no other replicas.
	StandDown func(reason string)
	// Settings are the initial settings.
	Settings Settings
	// Replica is this replica's name, and Namespace the namespace of function pods. Both are only shown to users.
	Replica, Namespace string
	// MaxMessageBytes limits the requests and responses of pods.
	MaxMessageBytes int
	// Now returns monotonic time.
	Now   func() time.Time
	Log   *slog.Logger
	Meter metric.Meter
}

// Manager is a [lease.Manager]. Use [New], and call Run while the Manager is used.
type Manager struct {
	*Inbox
	config  Config
	ids     atomic.Uint64
	metrics *metrics
}

var _ lease.Manager = (*Manager)(nil)

// New returns a manager without pods.
func New(config Config) (*Manager, error) {
	metrics, err := newMetrics(config.Meter)
	if err != nil {
		return nil, err
	}
	return &Manager{Inbox: config.Inbox, config: config, metrics: metrics}, nil
}

// tickInterval is the time between two ticks.
const tickInterval = time.Second

// Run answers leases until ctx is done. Leases that are waiting then get an error.
func (m *Manager) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var lookups errgroup.Group
	lookups.Go(func() error { m.keepMinimum(ctx); return nil })
	defer func() { _ = lookups.Wait() }() // returns no errors
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
