// SPDX-License-Identifier: Apache-2.0

// Package manager grants leases on function pods: it runs the pools, answers leases, and passes the actions that the
// pools emit to the cluster and the prober.
package manager

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"
	"golang.org/x/sync/errgroup"

	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/images"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// Images resolves images.
type Images interface {
	// Cached returns what ResolveImage would return without waiting.
	Cached(req *images.Request) (*images.Image, bool)
	// ResolveImage has errors with fault classes.
	ResolveImage(ctx context.Context, req *images.Request) (*images.Image, error)
}

// Cluster carries out what is decided about pods. None of its methods waits; what came of it arrives at
// [Inbox.Handle].
type Cluster interface {
	Create(action pool.Create, what podspec.Workload)
	Delete(action pool.Delete)
	Extend(action pool.Extend)
}

// Prober asks pods for their health, without waiting for the answer, which arrives at [Inbox.Handle].
type Prober interface {
	Probe(action pool.Probe)
	// Forget ends the question to a pod that is gone.
	Forget(pod, uid string)
}

// Config is what a manager is made of.
type Config struct {
	// Inbox takes events and settings, also before the manager exists.
	Inbox   *Inbox
	Images  Images
	Cluster Cluster
	Prober  Prober
	// Synced closes when all pods that existed at the start are known.
	Synced <-chan struct{}
	// Obstacle is what keeps them from being known; nil if nothing is known of one. One of class [fault.Precondition]
	// does not go away by itself.
	Obstacle func() error
	// OwnerOf returns the address of the replica that owns an image's function; empty if it is this one. It may be nil.
	OwnerOf func(image string) string
	// StandDown has this replica own no functions for a reason, while other replicas do; empty ends that. It does not
	// wait. Nil if there are no other replicas.
	StandDown func(reason string)
	// Settings are those at the start.
	Settings Settings
	// Replica is this replica's name, and Namespace that of the pods: both are shown to users.
	Replica, Namespace string
	// MaxMessageBytes is what pods take and give at most.
	MaxMessageBytes int
	// Now is this machine's time, by a clock that is never set.
	Now   func() time.Time
	Log   *slog.Logger
	Meter metric.Meter
}

// Manager is a [lease.Manager]. Use [New]; Run has to run while it is used.
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

// tickInterval is the time between two checks of what takes too long.
const tickInterval = time.Second

// Run answers leases until ctx ends. Leases that still wait then get an error.
func (m *Manager) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var lookups errgroup.Group
	lookups.Go(func() error { m.keepMinimum(ctx); return nil })
	defer func() { _ = lookups.Wait() }() // it returns no errors
	defer close(m.ended)
	defer cancel()
	l := newLoop(m.config, m.metrics)
	l.lookUpImage = func(image string, found func(*loop, podspec.Function, error)) {
		lookups.Go(func() error {
			resolved, err := m.config.Images.ResolveImage(ctx, &images.Request{Image: image})
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
			return nil // which ends waiting leases, by m.ended
		}
	}
}
