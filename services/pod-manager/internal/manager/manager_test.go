// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"

	"github.com/krm-function-runner/function-runner/libs/fault"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/cacheconfig"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/manager"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// resolver takes each image for what it says, after a while.
type resolver struct{ takes time.Duration }

func (r resolver) ResolveImage(
	ctx context.Context, req *imageresolverv1.ResolveImageRequest,
) (*imageresolverv1.ResolveImageResponse, error) {
	image := req.GetImage()
	select {
	case <-time.After(r.takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if strings.HasPrefix(image, "bad") {
		return nil, fault.New(fault.Precondition, "401 Unauthorized")
	}
	command := "/fn"
	if image == "moved:v1" { // only the digest leads to the image of the pods that there are
		command = "/other"
	}
	return &imageresolverv1.ResolveImageResponse{Reference: image, Digest: "sha256:01", Command: []string{command}}, nil
}

// template is what pods are made from.
var template = podspec.Default(podspec.Defaults{WrapperImage: "example.com/wrapper:v1"})

// settingsVersion is what Kubernetes shows of a workload.
func settingsVersion(of podspec.Workload) string {
	return podspec.Builder{}.SettingsVersion(podspec.Request{Workload: of, Template: template})
}

// cluster is a Kubernetes in which pods run at once, or not at all.
type cluster struct {
	broken string // why they do not run
	silent bool   // nothing is ever heard of them
	byTag  bool   // their image is named by tag alone

	mu       sync.Mutex
	requests []podspec.Workload
	deleted  []string
	// unprobed has the pods whose probes were cancelled, each with its UID.
	unprobed []string
	send     func(pool.Event)
	owners   map[string]string  // addresses of other replicas, by the images that they own
	stop     context.CancelFunc // ends the manager
}

func (c *cluster) Create(a pool.Create, pod podspec.Workload) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = append(c.requests, pod)
	if c.silent {
		return
	}
	uid := fmt.Sprint("uid-", len(c.requests))
	o := pool.Observation{
		Name: a.Name, UID: uid, Function: a.Function, Slot: a.Slot, ReclaimAfter: a.ReclaimAfter,
		TemplateVersion: template.Version(), SettingsVersion: settingsVersion(pod),
		Phase: pool.PhaseConnecting, Address: "10.0.0.1:9446", ByTag: c.byTag,
	}
	if c.broken != "" {
		o.Problem = pool.Problem{Kind: pool.Fatal, Reason: c.broken}
	}
	go c.send(pool.PodObserved{Observation: o})
}

func (c *cluster) Delete(a pool.Delete) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deleted = append(c.deleted, a.Reason)
	go c.send(pool.PodGone{Name: a.Name, UID: a.UID})
}

func (c *cluster) Extend(pool.Extend) {}

// Probe finds each pod healthy, after a second.
func (c *cluster) Probe(a pool.Probe) {
	time.AfterFunc(time.Second, func() { c.send(pool.Probed{Name: a.Name, UID: a.UID, Question: a.Question}) })
}

func (c *cluster) Forget(pod, uid string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unprobed = append(c.unprobed, pod+" "+uid)
}

// start runs a manager in the cluster, with one pod a function and one lease a pod.
func start(t *testing.T, c *cluster, r manager.Images) *manager.Manager {
	t.Helper()
	synced := make(chan struct{})
	close(synced)
	return startWith(t, c, r, synced, nil)
}

// startWith is start with a view of the cluster that an obstacle may keep from closing
// synced.
func startWith(t *testing.T, c *cluster, r manager.Images, synced chan struct{}, obstacle error) *manager.Manager {
	t.Helper()
	return startMeasured(t, c, r, synced, obstacle, noop.Meter{})
}

// startMeasured is startWith and a meter.
func startMeasured(
	t *testing.T, c *cluster, r manager.Images, synced chan struct{}, obstacle error, meter metric.Meter,
) *manager.Manager {
	t.Helper()
	m := manager.New(manager.Config{
		Inbox:  manager.NewInbox(),
		Images: r, Cluster: c, Prober: c, Synced: synced, Obstacle: func() error { return obstacle },
		Settings: manager.Settings{
			Template: template,
			Pools:    pool.Config{ScanInterval: time.Minute},
			Defaults: pool.Limits{
				MaxPods: 1, MaxWaitlistLength: 1, MaxConcurrency: 1, MaxQueue: 2,
				TTL: time.Hour, ReadyTimeout: time.Minute,
			},
		},
		Replica: "replica-0", Namespace: "fns", MaxMessageBytes: 1 << 20,
		OwnerOf: func(image string) string { return c.owners[image] }, StandDown: func(string) {},
		Now: time.Now, Log: slog.New(slog.DiscardHandler), Meter: meter,
	})
	c.send = m.Handle
	ctx, cancel := context.WithCancel(t.Context())
	c.stop = cancel
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := m.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return m
}

func open(image string) *podmanagerv1.LeaseRequest_Open {
	return &podmanagerv1.LeaseRequest_Open{Image: image, Attempt: 1}
}

func quietly(*podmanagerv1.LeaseResponse_Waiting) {}

func TestColdThenWarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{}
		m := start(t, c, resolver{takes: 2 * time.Second})
		var phases []podmanagerv1.Phase
		report := func(w *podmanagerv1.LeaseResponse_Waiting) { phases = append(phases, w.GetPhase()) }
		cold, err := m.Lease(t.Context(), open("fn:v1"), report)
		if err != nil {
			t.Fatal(err)
		}
		g := cold.Granted()
		if !g.GetColdStart() || g.GetAddress() != "10.0.0.1:9446" ||
			g.GetNamespace() != "fns" || g.GetMaxMessageBytes() != 1<<20 {
			t.Errorf("granted %v", g)
		}
		if len(phases) < 2 || phases[0] != podmanagerv1.Phase_PHASE_RESOLVING ||
			phases[len(phases)-1] != podmanagerv1.Phase_PHASE_CONNECTING {
			t.Errorf("reported %v, want resolving first and connecting last", phases)
		}
		if d := g.GetPhases()[0].GetDuration().AsDuration(); d != 2*time.Second {
			t.Errorf("resolving took %v, want 2s", d)
		}
		cold.Finish(podmanagerv1.LeaseRequest_OUTCOME_DONE, "")
		warm, err := m.Lease(t.Context(), open("fn:v1"), quietly)
		if err != nil || warm.Granted().GetColdStart() {
			t.Fatalf("the second lease: %v, %v, want a warm one", warm, err)
		}
		if c.requests[0].Function.Command[0] != "/fn" || len(c.requests) != 1 {
			t.Errorf("pods asked for: %+v", c.requests)
		}
	})
}

// TestWaitingLeasesEndWithTheManager has a lease wait for a pod when the manager stops: another one is asked next.
func TestWaitingLeasesEndWithTheManager(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{silent: true}
		m := start(t, c, resolver{})
		time.AfterFunc(time.Second, func() { c.stop() })
		_, err := m.Lease(t.Context(), open("fn:v1"), quietly)
		if fault.Of(err) != fault.Unavailable || !lease.IsElsewhere(err) {
			t.Errorf("got %v, want that another replica is asked", err)
		}
	})
}

// TestPodsThatAreGoneAreNotProbed has a pod deleted by another program, which may happen while it is probed.
func TestPodsThatAreGoneAreNotProbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{}
		m := start(t, c, resolver{})
		held, err := m.Lease(t.Context(), open("fn:v1"), quietly)
		if err != nil {
			t.Fatal(err)
		}
		held.Finish(podmanagerv1.LeaseRequest_OUTCOME_DONE, "")
		pod := held.Granted().GetPod()
		m.Handle(pool.PodGone{Name: pod, UID: "uid-1"})
		synctest.Wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		if !slices.Contains(c.unprobed, pod+" uid-1") {
			t.Errorf("the probes of %v were cancelled, want that of %s", c.unprobed, pod)
		}
	})
}

// TestTheDigestOfAPodByTagIsNotKnown has a node that pulls what the tag is then.
func TestTheDigestOfAPodByTagIsNotKnown(t *testing.T) {
	for byTag, want := range map[bool]string{false: "sha256:01", true: ""} {
		synctest.Test(t, func(t *testing.T) {
			m := start(t, &cluster{byTag: byTag}, resolver{})
			held, err := m.Lease(t.Context(), open("fn:v1"), quietly)
			if err != nil {
				t.Fatal(err)
			}
			if got := held.Granted().GetDigest(); got != want {
				t.Errorf("by tag %t: granted a pod with the digest %q, want %q", byTag, got, want)
			}
			held.Finish(podmanagerv1.LeaseRequest_OUTCOME_DONE, "")
		})
	}
}

// TestPodsAreAsTheirFunctionsSay has a function with settings of its own, and one without.
func TestPodsAreAsTheirFunctionsSay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{}
		m := start(t, c, resolver{})
		own := cacheconfig.Entry{MaxConcurrency: 16, Prefork: new(int), Resources: &corev1.ResourceRequirements{}}
		m.Configure(func(s *manager.Settings) { s.Functions = map[string]cacheconfig.Entry{"example.com/own:v1": own} })
		for _, image := range []string{"example.com/own:v1", "example.com/other:v1"} {
			if _, err := m.Lease(t.Context(), open(image), quietly); err != nil {
				t.Fatal(err)
			}
		}
		if r := c.requests[0]; r.Concurrency != 16 || r.Prefork != own.Prefork || r.Resources != own.Resources {
			t.Errorf("its pod has capacity for %d leases, prefork %v, resources %v", r.Concurrency, r.Prefork, r.Resources)
		}
		if r := c.requests[1]; r.Concurrency != 1 || r.Prefork != nil || r.Resources != nil {
			t.Errorf("the other's pod has capacity for %d leases, prefork %v, resources %v",
				r.Concurrency, r.Prefork, r.Resources)
		}
	})
}

// TestConfigured changes settings of a manager that runs, and of one that has ended.
func TestConfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m *manager.Manager
		t.Cleanup(func() { m.Configure(func(*manager.Settings) {}) }) // returns
		m = start(t, &cluster{}, resolver{})
		inForce := false
		m.Configure(func(*manager.Settings) { inForce = true })
		if !inForce {
			t.Error("not in force yet when it returned")
		}
	})
}

// TestSettingsReachPods changes what shapes a function's pods while one of them is warm.
func TestSettingsReachPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{}
		m := start(t, c, resolver{})
		var granted *podmanagerv1.LeaseResponse_Granted
		evaluate := func(want int, reason string) {
			t.Helper()
			held, err := m.Lease(t.Context(), open("example.com/fn:v1"), quietly)
			if err != nil {
				t.Fatal(err)
			}
			held.Finish(podmanagerv1.LeaseRequest_OUTCOME_DONE, "")
			granted = held.Granted()
			synctest.Wait() // a pod that is outdated serves until the new one is ready
			if len(c.requests) != want {
				t.Errorf("%d pods have been made, want %d: %s", len(c.requests), want, reason)
			}
		}
		configure := func(entry cacheconfig.Entry) {
			m.Configure(func(s *manager.Settings) { s.Functions = map[string]cacheconfig.Entry{"example.com/fn:v1": entry} })
		}
		evaluate(1, "the first")
		configure(cacheconfig.Entry{TTL: time.Minute})
		evaluate(1, "a time to live shapes no pod")
		configure(cacheconfig.Entry{Resources: &corev1.ResourceRequirements{}})
		evaluate(2, "a pod keeps the resources that it was made with")
		if first, second := settingsVersion(c.requests[0]), settingsVersion(c.requests[1]); first == "" || first == second {
			t.Errorf("the pods' versions are %q and %q", first, second)
		}
		evaluate(2, "the new pod is as it should be")
		if granted.GetMaxEvaluationTime() != nil {
			t.Errorf("a function without a time of its own is granted %v", granted.GetMaxEvaluationTime())
		}
		configure(cacheconfig.Entry{MaxEvaluationTime: time.Hour})
		evaluate(3, "a pod keeps the time that it was made with")
		evaluate(3, "the new pod has the time")
		own, leased := c.requests[2].MaxEvaluationTime, granted.GetMaxEvaluationTime().AsDuration()
		if own != time.Hour || leased != time.Hour {
			t.Errorf("an evaluation may take %v in its pod, and %v by its lease, want an hour", own, leased)
		}
	})
}

func TestLeaseErrors(t *testing.T) {
	tests := map[string]struct {
		reason string
		image  string
		broken string
		class  fault.Class
		text   string
	}{
		"image": {
			"the registry's words arrive",
			"bad:v1", "", fault.Precondition, "look up the image bad:v1: 401 Unauthorized",
		},
		"broken": {
			"the kubelet's words arrive",
			"fn:v1", "CrashLoopBackOff: exit code 1", fault.Precondition, "CrashLoopBackOff: exit code 1",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := start(t, &cluster{broken: tc.broken}, resolver{})
				_, err := m.Lease(t.Context(), open(tc.image), quietly)
				if err == nil || fault.Of(err) != tc.class || !strings.Contains(err.Error(), tc.text) {
					t.Errorf("error %v, want %v with %q: %s", err, tc.class, tc.text, tc.reason)
				}
			})
		})
	}
}

// TestQueue has one pod with capacity for one lease: the others wait, those beyond the queue's
// bound are rejected, and one that gives up costs nothing.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := start(t, &cluster{}, resolver{})
		first, err := m.Lease(t.Context(), open("fn:v1"), quietly)
		if err != nil {
			t.Fatal(err)
		}
		impatient, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		gaveUp, second := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := m.Lease(impatient, open("fn:v1"), quietly)
			gaveUp <- err
		}()
		synctest.Wait()
		go func() {
			_, err := m.Lease(t.Context(), open("fn:v1"), quietly)
			second <- err
		}()
		synctest.Wait()
		_, err = m.Lease(t.Context(), open("fn:v1"), quietly)
		if _, hint := fault.RetryAfter(err); fault.Of(err) != fault.Exhausted || !hint {
			t.Errorf("beyond the queue's bound: %v, want Exhausted with a hint", err)
		}
		if err := <-gaveUp; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who gave up got %v", err)
		}
		first.Finish(podmanagerv1.LeaseRequest_OUTCOME_DONE, "")
		first.Finish(podmanagerv1.LeaseRequest_OUTCOME_DONE, "") // changes nothing
		if err := <-second; err != nil {
			t.Errorf("the next in the queue got %v", err)
		}
		pools, err := m.ListPools(t.Context(), &podmanagerv1.ListPoolsRequest{})
		if err != nil || len(pools.GetPools()) != 1 {
			t.Fatalf("pools: %v, %v", pools, err)
		}
		p := pools.GetPools()[0]
		if p.GetActive() != 1 || p.GetWaiting() != 0 || p.GetReplica() != "replica-0" ||
			p.GetPods()[0].GetNamespace() != "fns" {
			t.Errorf("pool is %v, want one lease active and none waiting", p)
		}
	})
}

// TestOnlyOwnersNameThemselves lists a pool that this replica owns, and one that another replica owns.
func TestOnlyOwnersNameThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		owners := map[string]string{"example.com/other:v1": "10.0.0.2:9448"}
		m := start(t, &cluster{owners: owners}, resolver{})
		for image, want := range map[string]string{"example.com/fn:v1": "replica-0", "example.com/other:v1": ""} {
			if _, err := m.Lease(t.Context(), open(image), quietly); err != nil {
				t.Fatal(err)
			}
			list, err := m.ListPools(t.Context(), &podmanagerv1.ListPoolsRequest{Image: image})
			if err != nil || len(list.GetPools()) != 1 || list.GetPools()[0].GetReplica() != want {
				t.Errorf("%s: pools %v, %v, want one of replica %q", image, list, err, want)
			}
		}
	})
}

// TestLookupsAreShown has three leases wait for a slow registry, one of which gives up.
func TestLookupsAreShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := start(t, &cluster{}, resolver{takes: time.Minute})
		ctx, cancel := context.WithCancel(t.Context())
		var ended sync.WaitGroup
		for _, ctx := range []context.Context{t.Context(), t.Context(), ctx} {
			ended.Go(func() { _, _ = m.Lease(ctx, open("bad:v1"), quietly) })
		}
		expect := func(pools int, lookups int32) {
			t.Helper()
			synctest.Wait()
			list, err := m.ListPools(t.Context(), &podmanagerv1.ListPoolsRequest{})
			if err != nil || len(list.GetPools()) != pools {
				t.Fatalf("pools %v, %v, want %d", list, err, pools)
			}
			if pools == 0 {
				return
			}
			p := list.GetPools()[0]
			if p.GetKey().GetReference() != "bad:v1" || p.GetKey().GetDigest() != "" || p.GetWaiting() != lookups {
				t.Errorf("pool %v, want %d leases that wait for the digest", p, lookups)
			}
		}
		expect(0, 0) // it may come at once
		<-time.After(time.Second)
		expect(1, 3)
		cancel()
		expect(1, 2)
		ended.Wait()
		expect(0, 0)
	})
}

func TestBrokenPodIsCheckedBeforeItServes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := start(t, &cluster{}, resolver{})
		l, err := m.Lease(t.Context(), open("fn:v1"), quietly)
		if err != nil {
			t.Fatal(err)
		}
		l.Finish(podmanagerv1.LeaseRequest_OUTCOME_POD_BROKEN, "connection reset")
		before := time.Now()
		if _, err := m.Lease(t.Context(), open("fn:v1"), quietly); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(before); waited != time.Second {
			t.Errorf("the next lease waited %v, want the second that a check takes", waited)
		}
	})
}
