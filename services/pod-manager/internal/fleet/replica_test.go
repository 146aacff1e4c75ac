// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	"golang.org/x/sync/errgroup"

	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/apitest"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kube"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kubeclient"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/manager"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/membership"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/probe"
)

// replica is one pod-manager.
type replica struct {
	*manager.Manager
	world   *world
	name    string
	address string
	link    *apitest.Link
	keeper  *membership.Keeper
	synced  <-chan struct{}
	// podless has it reach no pod; silent has gateways not reach it.
	podless, silent, dead atomic.Bool
	division              atomic.Pointer[division]
	skew                  atomic.Int64 // how far its clock is ahead, in nanoseconds
	once                  sync.Once
	cancel                context.CancelFunc
	ended                 chan struct{}
}

// division is how a replica has last divided functions, and since when.
type division struct {
	owners membership.Owners
	since  time.Time
}

// settled reports whether the replica has acted as the owner of an image's function for long enough that
// others know it.
func (r *replica) settled(image string) bool {
	d := r.division.Load()
	return d != nil && d.owners.Owner(image).Mine && time.Since(d.since) > 5*time.Second && r.keeper.Owns(image)
}

// resolver knows each image.
type resolver struct{}

func (resolver) Cached(r *imageresolverv1.ResolveImageRequest) (*imageresolverv1.ResolveImageResponse, bool) {
	return &imageresolverv1.ResolveImageResponse{
		Reference: r.GetImage(), Digest: "sha256:0123456789abcdef",
		Command: []string{"/fn"},
	}, true
}

func (r resolver) ResolveImage(_ context.Context,
	q *imageresolverv1.ResolveImageRequest,
) (*imageresolverv1.ResolveImageResponse, error) {
	found, _ := r.Cached(q)
	return found, nil
}

// add starts one more replica.
func (w *world) add() *replica {
	w.mu.Lock()
	n := len(w.replicas) + 1
	w.mu.Unlock()
	client, link := w.server.Client(fmt.Sprint("replica-", n))
	link.Lag(w.setup.Lag, time.Millisecond)
	link.Forbid("leases", w.setup.Alone)
	r := &replica{
		world: w, name: fmt.Sprint("replica-", n), address: fmt.Sprintf("10.0.0.%d:9448", n), link: link,
		ended: make(chan struct{}),
	}
	log := slog.New(slog.DiscardHandler)
	clock := kubeclient.NewClock(log)
	now := func() time.Time { return clock.Now().Add(time.Duration(r.skew.Load())) }
	var err error
	r.keeper, err = membership.New(membership.Config{
		Leases: client.CoordinationV1().Leases("fns"), Replica: r.name, Address: r.address, Now: now,
		Changed: func(o membership.Owners) {
			r.division.Store(&division{o, time.Now()})
			r.Handle(ownersChanged(o))
		}, Log: log, Meter: noop.Meter{},
	})
	w.must(err)
	templates, err := kube.NewTemplates(kube.TemplatesConfig{
		Client: client, Name: "pod-template", Namespace: "fns",
		Defaults: podspec.Defaults{WrapperImage: "example.com/wrapper:v1"}, Telemetry: telemetry.Discard(),
	})
	w.must(err)
	builder := podspec.Builder{Namespace: "fns", MaxMessageBytes: 1 << 20}
	cluster, err := kube.New(kube.Config{
		Client: client, Namespace: "fns", PodIP: true, ClusterDomain: "cluster.local",
		Builder: builder, Templates: templates,
		ScanInterval: w.setup.Scan, Clock: clock, Telemetry: telemetry.Discard(), Owns: r.keeper.Owns,
	})
	w.must(err)
	prober := probe.NewAsking(r.ask, func(e pool.Event) { r.Handle(e) })
	r.synced = cluster.Synced()
	r.Manager, err = manager.New(manager.Config{
		Images: resolver{}, Cluster: cluster, Prober: prober, Synced: both(cluster.Synced(), r.keeper.Joined(),
			r.ended), Obstacle: cluster.Obstacle,
		StandDown: r.keeper.StandDown,
		Settings: manager.Settings{
			Builder: builder, Defaults: w.setup.Limits,
			Pools: pool.Config{
				MaxPods: w.setup.MaxPods, MaxWaiting: 1000, ScanInterval: w.setup.Scan,
				SchedulingTimeout: 10 * time.Second,
			},
		},
		Replica: r.name, Namespace: "fns", MaxMessageBytes: 1 << 20, Now: now, Log: log, Meter: noop.Meter{},
	})
	w.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	var tasks errgroup.Group
	for _, run := range []func(context.Context) error{
		r.Run, r.keeper.Run, prober.Run,
		func(ctx context.Context) error { return cluster.Run(ctx, r.Handle) },
		func(ctx context.Context) error { return templates.Run(ctx, r.use) },
	} {
		tasks.Go(func() error { return run(ctx) })
	}
	go func() {
		defer close(r.ended)
		_ = tasks.Wait()
	}()
	w.mu.Lock()
	w.replicas = append(w.replicas, r)
	changes := w.changes
	w.mu.Unlock()
	for _, change := range changes {
		r.Configure(change)
	}
	return r
}

// use has new pods made from a template.
func (r *replica) use(template podspec.Template) {
	r.Configure(func(s *manager.Settings) { s.Template = template })
}

func (w *world) must(err error) {
	if err != nil {
		panic(err)
	}
}

// ownersChanged is the event for a division of functions.
func ownersChanged(o membership.Owners) pool.OwnersChanged {
	return pool.OwnersChanged{
		Owner:    func(f pool.Function) pool.Owner { return pool.Owner(o.Owner(f.Reference)) },
		Replicas: o.Replicas(), Lost: o.Lost,
	}
}

// both returns a channel that closes after two others, or the third.
func both(a, b, end <-chan struct{}) <-chan struct{} {
	closed := make(chan struct{})
	go func() {
		for _, c := range []<-chan struct{}{a, b} {
			select {
			case <-c:
			case <-end:
			}
		}
		close(closed)
	}()
	return closed
}

// kill ends a replica that cannot tell any other.
func (r *replica) kill() {
	r.once.Do(func() {
		r.dead.Store(true)
		r.link.Cut()
		r.cancel()
		<-r.ended
	})
}

// leave ends a replica in order.
func (r *replica) leave() {
	r.once.Do(func() {
		r.dead.Store(true)
		r.cancel()
		<-r.ended
	})
}

var errRefused = errors.New("connection refused")

// ask is how the replica asks a pod.
func (r *replica) ask(ctx context.Context, pod pool.Probe) error {
	for {
		if !r.podless.Load() && r.world.answers(pod.Address) {
			select {
			case <-time.After(time.Millisecond):
				return nil
			case <-ctx.Done():
				return errRefused
			}
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return errRefused
		}
	}
}

// answers reports whether the pod at an address serves.
func (w *world) answers(address string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := w.pods[address]
	return ok && !p.gone && !p.silent
}
