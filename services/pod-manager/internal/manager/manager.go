// SPDX-License-Identifier: Apache-2.0

// Package manager grants leases on function pods: it runs the pools, answers leases, and passes the
// actions that the pools emit to the cluster and the prober.
package manager

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"
	"golang.org/x/sync/errgroup"

	"github.com/krm-function-runner/function-runner/libs/fault"
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

// Cluster carries out what is decided about pods. None of its methods waits; what
// came of it arrives at [Manager.Handle].
type Cluster interface {
	Create(action pool.Create, what podspec.Workload)
	Delete(action pool.Delete)
	Extend(action pool.Extend)
}

// Prober asks pods for their health, without waiting for the answer, which arrives at
// [Manager.Handle].
type Prober interface {
	Probe(action pool.Probe)
	// Forget ends the question to a pod that is gone.
	Forget(pod, uid string)
}

// Config is what a manager is made of.
type Config struct {
	Images  Images
	Cluster Cluster
	Prober  Prober
	// Synced closes when all pods that existed at the start are known.
	Synced <-chan struct{}
	// Obstacle is what keeps them from being known; nil if nothing is known of one.
	// One of class [fault.Precondition] does not go away by itself.
	Obstacle func() error
	// OwnerOf returns the address of the replica that owns an image's function; empty if it is this one. It may be nil.
	OwnerOf func(image string) string
	// StandDown has this replica own no functions for a reason, while other replicas do; empty
	// ends that. It does not wait. Nil if there are no other replicas.
	StandDown func(reason string)
	// Settings are those at the start.
	Settings Settings
	// Replica is this replica's name, and Namespace that of the pods: both are
	// shown to users.
	Replica, Namespace string
	// MaxMessageBytes is what pods take and give at most.
	MaxMessageBytes int
	// Now is this machine's time, by a clock that is never set.
	Now   func() time.Time
	Log   *slog.Logger
	Meter metric.Meter
}

// inboxSize is how many messages may wait for the loop. It works them off in
// microseconds; senders wait while it is full.
const inboxSize = 1024

// Manager is a [lease.Manager]. Use [New]; Run has to run while it is used.
type Manager struct {
	config Config
	// All state belongs to the loop, which runs the functions that it is sent.
	inbox chan func(*loop)
	ended chan struct{}
	// relisted has a capacity of one: the listed functions have changed.
	relisted chan struct{}
	ids      atomic.Uint64
	metrics  *metrics
}

var _ lease.Manager = (*Manager)(nil)

// New returns a manager without pods.
func New(config Config) (*Manager, error) {
	metrics, err := newMetrics(config.Meter)
	if err != nil {
		return nil, err
	}
	return &Manager{
		config: config, metrics: metrics,
		inbox: make(chan func(*loop), inboxSize), ended: make(chan struct{}), relisted: make(chan struct{}, 1),
	}, nil
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
	ticker := time.NewTicker(tickInterval)
	defer ticker.Stop()
	for {
		select {
		case message := <-m.inbox:
			message(l)
		case <-ticker.C:
			l.handle(pool.Tick{})
			l.count()
		case <-ctx.Done():
			l.abandon()
			return nil
		}
	}
}

// Handle takes an event. It waits while the inbox is full.
func (m *Manager) Handle(event pool.Event) {
	m.post(func(l *loop) {
		if gone, ok := event.(pool.PodGone); ok {
			l.config.Prober.Forget(gone.Name, gone.UID)
			delete(l.origins, gone.Name)
		}
		if failed, ok := event.(pool.CreateFailed); ok {
			delete(l.origins, failed.Name)
			l.config.Log.Warn("function pod not created", "pod", failed.Name, "error", failed.Problem.Reason)
		}
		l.handle(event)
	})
}

// post has the loop do something, now or soon; nothing if the manager has ended.
func (m *Manager) post(message func(*loop)) {
	select {
	case m.inbox <- message:
	case <-m.ended:
	}
}

// send has the loop do something, unless ctx or the manager ends first.
func (m *Manager) send(ctx context.Context, message func(*loop)) error {
	select {
	case m.inbox <- message:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-m.ended:
		return errEnded()
	}
}

// ask returns the loop's answer to a question, unless ctx or the manager ends first.
func ask[T any](ctx context.Context, m *Manager, question func(*loop) T) (answer T, err error) {
	answered := make(chan T, 1)
	if err := m.send(ctx, func(l *loop) { answered <- question(l) }); err != nil {
		return answer, err
	}
	select {
	case answer := <-answered:
		return answer, nil
	case <-m.ended:
		return answer, errEnded()
	}
}

func errEnded() error {
	return lease.Elsewhere(fault.New(fault.Unavailable, "the pod-manager has stopped"))
}

// Configure replaces the settings. They are in force when it returns, unless the manager
// has ended: it waits for the loop, so the loop must not wait for its caller.
func (m *Manager) Configure(change func(*Settings)) {
	inForce := make(chan struct{})
	m.post(func(l *loop) {
		change(&l.settings)
		l.listedPods = l.settings.listed()
		l.handle(pool.Configured{Config: l.settings.pools()})
		close(inForce)
	})
	select {
	case <-inForce:
	case <-m.ended:
	}
	select {
	case m.relisted <- struct{}{}:
	default: // that the list may have changed is known already
	}
}
