// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package chaos_test

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/ownership"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

const (
	// interval is the time between two looks of the watcher.
	interval = 250 * time.Millisecond
	// handover is how long two replicas may hold different views of who owns a function.
	handover = 20 * time.Second
	// imageAnnotation has the image of a function pod.
	imageAnnotation = "krm-function-runner.github.io/image-reference"
)

// use is that a replica had leases on a function pod.
type use struct {
	at           time.Time
	pod, replica string
}

// division is the addresses of the replicas that owned functions.
type division struct {
	at        time.Time
	addresses []string
}

// watcher records who uses function pods, and who owns functions.
type watcher struct {
	sys   *system
	begin time.Time
	conns map[string]*grpc.ClientConn // of pod-managers, by address

	mu        sync.Mutex
	uses      []use
	divisions []division
	images    map[string]string  // of function pods, by name
	started   map[types.UID]bool // function pods
	addresses map[string]string  // of pod-managers, by name
	takeovers map[string]float64 // by pod-manager
	most      int                // function pods at a time
}

func watch(t *testing.T, sys *system) *watcher {
	w := &watcher{
		sys: sys, begin: time.Now(), conns: make(map[string]*grpc.ClientConn), images: make(map[string]string),
		started: make(map[types.UID]bool), addresses: make(map[string]string), takeovers: make(map[string]float64),
	}
	t.Cleanup(func() {
		for _, conn := range w.conns {
			_ = conn.Close()
		}
	})
	return w
}

// run looks again and again until ctx ends. What a look does not reach is broken just now.
func (w *watcher) run(ctx context.Context) {
	for ; ctx.Err() == nil; <-time.After(interval) {
		w.lookAtPods(ctx)
		w.lookAtOwners(ctx)
		managers, err := w.sys.running(ctx, "pod-manager")
		if err != nil {
			continue
		}
		var looks sync.WaitGroup
		for _, pod := range managers {
			looks.Go(func() { w.lookAt(ctx, pod.Name, pod.Status.PodIP, w.conn(pod.Status.PodIP)) })
		}
		looks.Wait()
	}
}

// conn is a connection to a pod-manager. Only run calls it.
func (w *watcher) conn(address string) *grpc.ClientConn {
	if w.conns[address] == nil {
		conn, err := grpc.NewClient(address+":9448", grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			panic(err) // the options are constants
		}
		w.conns[address] = conn
	}
	return w.conns[address]
}

func (w *watcher) lookAtPods(ctx context.Context) {
	list, err := s.Client.CoreV1().Pods(w.sys.functions).List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	count := 0
	for _, pod := range list.Items {
		w.images[pod.Name] = pod.Annotations[imageAnnotation]
		w.started[pod.UID] = true
		if pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed {
			count++
		}
	}
	w.most = max(w.most, count)
}

func (w *watcher) lookAtOwners(ctx context.Context) {
	list, err := s.Client.CoordinationV1().Leases(w.sys.functions).List(ctx,
		metav1.ListOptions{LabelSelector: "krm-function-runner.github.io/pod-manager=member"})
	if err != nil {
		return
	}
	now := division{at: time.Now()}
	for _, lease := range list.Items {
		alive := lease.Spec.RenewTime != nil && time.Since(lease.Spec.RenewTime.Time) < 15*time.Second
		if alive && lease.Annotations["krm-function-runner.github.io/stood-down"] == "" {
			now.addresses = append(now.addresses, lease.Annotations["krm-function-runner.github.io/address"])
		}
	}
	slices.Sort(now.addresses)
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.divisions); n == 0 || !slices.Equal(w.divisions[n-1].addresses, now.addresses) {
		w.divisions = append(w.divisions, now)
	}
}

// lookAt records which pods a pod-manager lends.
func (w *watcher) lookAt(ctx context.Context, name, address string, conn *grpc.ClientConn) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	resp, err := podmanagerv1.NewPodManagerServiceClient(conn).ListPools(ctx, &podmanagerv1.ListPoolsRequest{})
	if err != nil {
		return
	}
	page, err := suite.Metrics(ctx, address)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addresses[name] = address + ":9448"
	if err == nil {
		w.takeovers[name] = value(page, "fn_takeovers_total")
	}
	for _, pool := range resp.GetPools() {
		for _, pod := range pool.GetPods() {
			if pod.GetActive() > 0 {
				w.uses = append(w.uses, use{time.Now(), pod.GetName(), name})
			}
		}
	}
}

// judge fails for each pod that was deleted by a pod-manager while another one used it, unless the
// first one owned it or the pod was broken.
func (w *watcher) judge(t *testing.T, st *storm) {
	t.Helper()
	for _, r := range s.Requests(t, w.sys.services, "pod-manager", w.begin) {
		deleted := r.Verb == "delete" && r.Object.Resource == "pods" && r.Response.Code == http.StatusOK
		if !deleted || slices.Contains(st.harmed, r.Object.Name) {
			continue
		}
		by, at := r.Pod(), r.Received
		used := slices.ContainsFunc(w.uses, func(u use) bool {
			return u.pod == r.Object.Name && u.replica != by && u.at.Before(at) && at.Sub(u.at) < 2*interval
		})
		if used && !w.owned(by, w.images[r.Object.Name], at) {
			t.Errorf("at %s %s deleted pod %s, which another replica used, without owning it",
				at.Format("15:04:05.0"), by, r.Object.Name)
		}
	}
	if w.most > maxPods {
		t.Errorf("there were %d function pods at a time, which may be %d", w.most, maxPods)
	}
}

// owned reports whether a replica owned a function at a time, or shortly before.
func (w *watcher) owned(replica, image string, at time.Time) bool {
	for i, d := range w.divisions {
		over := i+1 < len(w.divisions) && w.divisions[i+1].at.Before(at.Add(-handover))
		if over || d.at.After(at.Add(time.Second)) {
			continue
		}
		if owner := ownership.Owner(d.addresses, image); owner >= 0 && d.addresses[owner] == w.addresses[replica] {
			return true
		}
	}
	return false
}
