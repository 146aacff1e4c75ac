// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package faults_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/imagecopy"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// function is a function of one test: each has its own image name, and so its own pods.
type function struct {
	*system
	image string
	// deleted are the Services of pods that the test has deleted itself.
	deleted []string
}

// sleeper returns a function that takes the time that its caller requests. When the test ends, none
// of its pods may be in use, and they are removed.
func (sys *system) sleeper(t *testing.T, tag string) *function {
	t.Helper()
	return sys.variant(t, "test/sleep", tag, nil)
}

// variant returns a function of the test bed under its own tag, with another configuration if
// change is given.
func (sys *system) variant(t *testing.T, repository, tag string, change func(*v1.Config)) *function {
	t.Helper()
	image := s.Registry(t, "open").Host + "/" + repository
	imagecopy.Push(t, image+":v1", image+":"+tag, change)
	return sys.function(t, image+":"+tag)
}

// function returns the function of the image.
func (sys *system) function(t *testing.T, image string) *function {
	f := &function{system: sys, image: image}
	t.Cleanup(func() { f.leavesNothing(t) })
	return f
}

// evaluate evaluates the function; a sleeper takes the given time.
func (f *function) evaluate(ctx context.Context, takes time.Duration) error {
	return suite.Sleep(ctx, f.gateway, f.image, takes, grpc.WaitForReady(true))
}

// Callers' deadlines.
const (
	// failureDeadline is for a request that cannot be served. It is shorter than the time that a pod may take to become
	// ready (5 minutes), after which each error would come. How long the node takes is the machine's matter.
	failureDeadline = 4 * time.Minute
	// longDeadline is for any other request, which must be served, whatever happens in the meantime.
	longDeadline = 5 * time.Minute
)

// evaluateWithin evaluates the function for a caller with a deadline.
func (f *function) evaluateWithin(ctx context.Context, deadline, takes time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	return f.evaluate(ctx, takes)
}

// succeeds evaluates the function, which must not fail.
func (f *function) succeeds(t *testing.T, when string) {
	t.Helper()
	if err := f.evaluateWithin(suite.Context(t), longDeadline, 0); err != nil {
		t.Fatalf("%s: %v", when, err)
	}
}

// start begins an evaluation that takes the given time, and returns when its lease is granted. The
// returned function waits for the end. An evaluation that ended before anyone looked is followed by a
// longer one: the machine is busy.
func (f *function) start(t *testing.T, takes time.Duration) (wait func() error) {
	t.Helper()
	ctx, done := suite.Context(t), make(chan error, 1)
	for {
		f.awaitPool(ctx, t, "no other evaluation runs", func(p *podmanagerv1.Pool) bool { return p.GetActive() == 0 })
		go func() { done <- f.evaluateWithin(ctx, longDeadline, takes) }()
		begun := f.awaitPool(ctx, t, "an evaluation runs, or has ended",
			func(p *podmanagerv1.Pool) bool { return p.GetActive() == 1 || len(done) == 1 })
		if begun.GetActive() == 1 {
			return func() error { return <-done }
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		takes *= 2
	}
}

// pool is the function's pool, as seen by all pod-managers together; an empty one if there is none.
func (f *function) pool(ctx context.Context, t testing.TB) *podmanagerv1.Pool {
	t.Helper()
	whole := &podmanagerv1.Pool{}
	for _, pool := range f.allPools(ctx, t) {
		if pool.GetKey().GetReference() == f.image {
			join(whole, pool)
		}
	}
	return whole
}

// join adds the pool of another pod-manager. All know the same pods, and each has its own callers;
// the result is based on a replica that has callers.
func join(whole, pool *podmanagerv1.Pool) {
	if pool.GetActive()+pool.GetWaiting() > 0 {
		whole.Replica = pool.GetReplica()
	}
	whole.Active += pool.GetActive()
	whole.Waiting += pool.GetWaiting()
	whole.LeasesTotal += pool.GetLeasesTotal()
	whole.ColdStartsTotal += pool.GetColdStartsTotal()
	for _, pod := range pool.GetPods() {
		known := slices.IndexFunc(whole.GetPods(),
			func(other *podmanagerv1.Pod) bool { return other.GetName() == pod.GetName() })
		switch {
		case known < 0:
			whole.Pods = append(whole.Pods, pod)
		case pod.GetState() == podmanagerv1.Pod_STATE_READY:
			whole.Pods[known] = pod
		}
	}
}

// allPools returns all pools. It waits for a pod-manager that is starting.
func (sys *system) allPools(ctx context.Context, t testing.TB) []*podmanagerv1.Pool {
	t.Helper()
	resp, err := podmanagerv1.NewPodManagerServiceClient(sys.manager).ListPools(ctx, &podmanagerv1.ListPoolsRequest{},
		grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	return resp.GetPools()
}

// awaitPool waits for a condition of the function's pool, and returns the pool.
func (f *function) awaitPool(ctx context.Context, t testing.TB, what string, wanted func(*podmanagerv1.Pool) bool) (
	pool *podmanagerv1.Pool,
) {
	t.Helper()
	suite.Until(ctx, t, what, func() (bool, string) {
		pool = f.pool(ctx, t)
		return wanted(pool), pool.String()
	})
	return pool
}

// ready reports whether a pool has one pod, which takes leases.
func ready(pool *podmanagerv1.Pool) bool {
	return len(pool.GetPods()) == 1 && pool.GetPods()[0].GetState() == podmanagerv1.Pod_STATE_READY
}

// pods returns the function's pods in Kubernetes.
func (f *function) pods(ctx context.Context, t testing.TB) []corev1.Pod {
	t.Helper()
	pods, err := s.Client.CoreV1().Pods(f.functions).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var own []corev1.Pod
	for _, pod := range pods.Items {
		if pod.Annotations[imageAnnotation] == f.image {
			own = append(own, pod)
		}
	}
	return own
}

// pod waits until the function has a single pod, and returns the pod. The pod may not exist yet, and there may be a
// second pod while a busy machine keeps the first from answering.
func (f *function) pod(t testing.TB) *corev1.Pod {
	t.Helper()
	var pods []corev1.Pod
	suite.Until(suite.Context(t), t, "the function has a single pod", func() (bool, string) {
		pods = f.pods(suite.Context(t), t)
		return len(pods) == 1, fmt.Sprint(len(pods), " pods")
	})
	return &pods[0]
}

// delete deletes a pod of the function with a grace period; a negative one for the pod's own.
func (f *function) delete(t testing.TB, pod *corev1.Pod, grace int64) {
	t.Helper()
	f.deleted = append(f.deleted, pod.Labels[idLabel])
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}}
	if grace >= 0 {
		options.GracePeriodSeconds = &grace
	}
	if err := s.Client.CoreV1().Pods(f.functions).Delete(suite.Context(t), pod.Name, options); err != nil {
		t.Fatal(err)
	}
}
