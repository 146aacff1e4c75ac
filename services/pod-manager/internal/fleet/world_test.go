// SPDX-License-Identifier: Apache-2.0

// Package fleet_test contains tests that simulate several replicas of the pod-manager in virtual time. The replicas run
// the real pools, manager, ownership, probes and adapter to Kubernetes, and share a Kubernetes API in memory.
//
// A script lists events for replicas, links and pods. A referee watches the API and the callers. It checks that all
// callers get a pod by their deadline, that no evaluation is interrupted, and that all pods are deleted in the end.
// If a check fails, the script is shortened until each of its lines is necessary for the failure.
package fleet_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/manager"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// setup is what is the same for all replicas of a simulation.
type setup struct {
	Replicas int
	Limits   pool.Limits
	Quota    int // of pods; 0 for none
	Scan     time.Duration
	Lag      time.Duration // of watches
	Latency  time.Duration // of requests
	Alone    bool          // no rights on Leases
	Unready  bool          // the second replica never becomes ready
	// InProcess is true if each replica has callers of its own, as in the function-runner's process.
	InProcess bool
	Node      int // pods per node; 0 for one node
	Startup   time.Duration
}

// usual is a setup with three replicas.
func usual() setup {
	return setup{
		Replicas: 3, Scan: 10 * time.Second, Lag: 20 * time.Millisecond, Latency: time.Millisecond,
		Startup: 300 * time.Millisecond,
		Limits: pool.Limits{
			MaxPods: 2, MaxWaitlistLength: 2, MaxConcurrency: 4, MaxQueue: 100, TTL: 2 * time.Minute,
			ReadyTimeout: time.Minute,
		},
	}
}

// world is replicas, a Kubernetes with kubelets, and callers. All of it lives in one bubble of
// synctest.
type world struct {
	t       testing.TB
	setup   setup
	begin   time.Time
	server  *Server
	running sync.WaitGroup
	stop    chan struct{}

	mu       sync.Mutex
	replicas []*replica
	changes  []func(*manager.Settings) // of settings, in their order
	ips      int
	pods     map[string]*running // by address
	used     map[use]int         // evaluations
	leases   []leaseChange       // in their order
	owners   map[string]string   // address of the replica that granted the last lease, by image
	named    []*replica          // that DNS named last
	turn     int
	counted  counts
}

// counts are what happened.
type counts struct {
	requests, cold, created int
	deleted                 []deletion // of pods that served
	failures                []string
	slowest                 time.Duration
}

// counts returns what happened until now.
func (w *world) counts() counts {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.counted
	now.deleted = slices.Clone(now.deleted)
	now.failures = slices.Clone(now.failures)
	return now
}

// forgetSlowest has counts report the slowest request that ends from now on.
func (w *world) forgetSlowest() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counted.slowest = 0
}

// running is a pod as its kubelet has it.
type running struct {
	name   string
	uid    types.UID
	silent bool // its wrapper server hangs, and the kubelet does not notice
	gone   bool
}

// deletion is a pod that a replica deleted.
type deletion struct {
	by, pod string
	at      time.Duration
}

func newWorld(t testing.TB, s setup) *world {
	w := &world{
		t: t, setup: s, begin: time.Now(), stop: make(chan struct{}),
		pods: make(map[string]*running), used: make(map[use]int), owners: make(map[string]string),
	}
	w.server = newServer(w.changed)
	w.server.SetQuota(s.Quota)
	w.server.OnDelete(w.deleted)
	w.must(w.server.Create("configmaps", podTemplate()))
	for range s.Replicas {
		w.add()
	}
	return w
}

// end ends all replicas and kubelets.
func (w *world) end() {
	w.mu.Lock()
	replicas := w.replicas
	w.mu.Unlock()
	for _, r := range replicas {
		r.kill()
	}
	close(w.stop)
	w.running.Wait()
}

// wait lets virtual time pass.
func wait(d time.Duration) { <-time.After(d) }

// now is how long the simulation has been running.
func (w *world) now() time.Duration { return time.Since(w.begin) }

// fail records a broken promise.
func (w *world) fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counted.failures = append(w.counted.failures, fmt.Sprintf("%s ", w.now())+fmt.Sprintf(format, args...))
}

// later does something after a time, unless the simulation ends before.
func (w *world) later(d time.Duration, do func()) {
	w.running.Go(func() {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			do()
		case <-w.stop:
		}
	})
}

// changed is told of each change of an object: it is the kubelet.
func (w *world) changed(event watch.EventType, object Object) {
	if lease, ok := object.(*coordinationv1.Lease); ok {
		w.recordLease(event, lease)
	}
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	switch {
	case event == watch.Added:
		w.mu.Lock()
		w.counted.created++
		w.mu.Unlock()
		w.later(w.setup.Startup, func() { w.boot(pod.Name, pod.UID) })
	case event == watch.Deleted:
	case pod.DeletionTimestamp != nil:
		grace := time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
		w.later(500*time.Millisecond, func() { w.shut(pod, time.Now().Add(grace)) })
	}
}

// boot has a pod run, and become ready.
func (w *world) boot(name string, uid types.UID) {
	w.mu.Lock()
	w.ips++
	ip := fmt.Sprintf("10.1.%d.%d", w.ips/250, w.ips%250+1)
	node := fmt.Sprint("node-", w.ips/max(w.setup.Node, 1<<20))
	w.pods[ip+":9446"] = &running{name: name, uid: uid}
	w.mu.Unlock()
	w.server.Change("pods", name, func(o Object) {
		pod := o.(*corev1.Pod)
		if pod.UID != uid || pod.DeletionTimestamp != nil {
			return
		}
		pod.Spec.NodeName = node
		pod.Status.PodIP = ip
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "function", Ready: true, ContainerID: "containerd://1",
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}}
	})
}

// shut ends a pod that is deleted: once its evaluations are done, or by force.
func (w *world) shut(pod *corev1.Pod, force time.Time) {
	w.mu.Lock()
	busy := w.countUses(pod.UID, "") > 0 && time.Now().Before(force)
	if !busy {
		for _, p := range w.pods {
			p.gone = p.gone || p.uid == pod.UID
		}
	}
	w.mu.Unlock()
	if busy {
		w.later(500*time.Millisecond, func() { w.shut(pod, force) })
		return
	}
	w.server.Remove("pods", pod.Name, pod.UID)
}
