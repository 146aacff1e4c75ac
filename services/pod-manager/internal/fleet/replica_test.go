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
	link    *Link
	keeper  *membership.Keeper
	serves  <-chan struct{}
	// podless has it reach no pod; silent has gateways not reach it, which noticed that if noticed is set.
	podless, silent, dead, noticed, left atomic.Bool

	skew   atomic.Int64 // how far its clock is ahead, in nanoseconds
	once   sync.Once
	cancel context.CancelFunc
	ended  chan struct{}
}

// resolver knows each image.
type resolver struct{}

func (resolver) ResolveImage(
	_ context.Context, req *imageresolverv1.ResolveImageRequest,
) (*imageresolverv1.ResolveImageResponse, error) {
	return &imageresolverv1.ResolveImageResponse{
		Reference: req.GetImage(), Digest: "sha256:0123456789abcdef", Command: []string{"/fn"},
	}, nil
}

// add starts one more replica.
func (w *world) add() *replica {
	w.mu.Lock()
	n := len(w.replicas) + 1
	w.mu.Unlock()
	client, link := w.server.Client(fmt.Sprint("replica-", n))
	link.Lag(w.setup.Lag, w.setup.Latency)
	link.Forbid("leases", w.setup.Alone)
	r := &replica{
		world: w, name: fmt.Sprint("replica-", n), address: fmt.Sprintf("10.0.0.%d:9448", n), link: link,
		ended: make(chan struct{}),
	}
	inbox := manager.NewInbox()
	log := slog.New(slog.DiscardHandler)
	clock := kubeclient.NewClock(log)
	now := func() time.Time { return clock.Now().Add(time.Duration(r.skew.Load())) }
	address := r.address
	if w.setup.InProcess {
		address = ""
	}
	r.keeper = membership.New(membership.Config{
		Leases: client.CoordinationV1().Leases("fns"), Replica: r.name, Address: address, Now: now,
		Starting: "it is starting", Changed: func(o membership.Owners) { inbox.Handle(o.Event()) },
		Log: log, Meter: noop.Meter{},
	})
	templates := kube.NewTemplates(kube.TemplatesConfig{
		Client: client, Name: "pod-template", Namespace: "fns",
		Defaults: podspec.Defaults{
			WrapperImage: "example.com/wrapper:v1", TerminationGracePeriod: 5*time.Minute + 30*time.Second,
		}, Telemetry: telemetry.Discard(),
	})
	builder := podspec.Builder{Namespace: "fns", MaxMessageBytes: 1 << 20}
	cluster, err := kube.New(kube.Config{
		Client: client, Namespace: "fns", PodIP: true,
		Builder: builder, Send: inbox.Handle, Templates: templates,
		ScanInterval: w.setup.Scan, Clock: clock, Telemetry: telemetry.Discard(), Owns: r.keeper.Owns,
	})
	w.must(err)
	prober := probe.NewAsking(r.ask, inbox.Handle)
	synced := all(r.ended, cluster.Synced(), r.keeper.Joined())
	r.serves = synced
	if w.setup.Unready && n == 2 {
		r.serves = nil
	}
	r.Manager = manager.New(manager.Config{
		Inbox: inbox, Images: resolver{}, Cluster: cluster, Prober: prober, Synced: synced, Obstacle: cluster.Obstacle,
		StandDown: r.keeper.StandDown, Problems: r.keeper.Problems,
		OwnerOf: func(image string) string { return r.keeper.Owners().Owner(image).Address },
		Settings: manager.Settings{
			Builder: builder, Defaults: w.setup.Limits,
			Pools: pool.Config{
				ScanInterval: w.setup.Scan, SchedulingTimeout: 10 * time.Second, InProcess: w.setup.InProcess,
			},
		},
		Replica: r.name, Namespace: "fns", MaxMessageBytes: 1 << 20, Now: now, Log: log, Meter: noop.Meter{},
	})
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	var tasks errgroup.Group
	for _, run := range []func(context.Context) error{
		r.Run, cluster.Run, r.keeper.Run, prober.Run,
		func(ctx context.Context) error { return templates.Run(ctx, r.use) },
		func(ctx context.Context) error {
			select {
			case <-r.serves:
				r.keeper.Started()
			case <-ctx.Done():
			}
			return nil
		},
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

// all returns a channel that closes after others, or after end.
func all(end <-chan struct{}, others ...<-chan struct{}) <-chan struct{} {
	closed := make(chan struct{})
	go func() {
		for _, c := range others {
			select {
			case <-c:
			case <-end:
				return
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
		r.left.Store(true)
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

// exists reports whether the pod at an address has not ended.
func (w *world) exists(address string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.pods[address].gone
}

// answers reports whether the pod at an address serves.
func (w *world) answers(address string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := w.pods[address]
	return ok && !p.gone && !p.silent
}
