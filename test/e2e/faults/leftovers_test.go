// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package faults_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// leavesNothing records the function's Services, removes its pods, and waits until none of its pods
// and leases are left. The Services of these pods would stay for a minute, see abandon.
func (f *function) leavesNothing(t *testing.T) {
	t.Helper()
	// The test's own context has ended.
	ctx, cancel := context.WithTimeout(context.Background(), 2*suite.ConditionTimeout)
	defer cancel()
	f.awaitServices(ctx, t)
	for _, pod := range f.pods(ctx, t) {
		// The pod has nothing to finish.
		err := s.Client.CoreV1().Pods(f.functions).Delete(ctx, pod.Name,
			metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
		if err != nil {
			t.Logf("pod %s is deleted already: %v", pod.Name, err)
		}
	}
	suite.Until(ctx, t, "the function's pods are gone", func() (bool, string) {
		pods := f.pods(ctx, t)
		return len(pods) == 0, fmt.Sprint(len(pods), " pods")
	})
	suite.Until(ctx, t, "no lease and no pod is left in the pool", func() (bool, string) {
		pool := f.pool(ctx, t)
		return pool.GetActive() == 0 && pool.GetWaiting() == 0 && len(pool.GetPods()) == 0, pool.String()
	})
	for _, service := range f.serviceNames(ctx, t, f.image) {
		err := s.Client.CoreV1().Services(f.functions).Delete(ctx, service, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	}
}

// soon is well below a minute, the age at which Services without a pod are collected.
const soon = 45 * time.Second

// awaitServices waits until the function has no Service without a pod, which is soon: the
// pod-manager deletes a pod together with its Service. Only Services whose pods the test itself has
// deleted stay for a while, see abandon.
func (f *function) awaitServices(ctx context.Context, t testing.TB) {
	t.Helper()
	limited, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	suite.Until(limited, t, "each of the function's Services has its pod", func() (bool, string) {
		expected := slices.Clone(f.deleted)
		for _, pod := range f.pods(ctx, t) {
			expected = append(expected, pod.Labels[idLabel])
		}
		alone := slices.DeleteFunc(f.serviceNames(ctx, t, f.image),
			func(name string) bool { return slices.Contains(expected, name) })
		return len(alone) == 0, fmt.Sprint("without a pod there are ", alone)
	})
}

// serviceNames returns the Services of an image's pods; of all pods if image is empty.
func (sys *system) serviceNames(ctx context.Context, t testing.TB, image string) []string {
	t.Helper()
	services, err := s.Client.CoreV1().Services(sys.functions).List(ctx, metav1.ListOptions{LabelSelector: idLabel})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, service := range services.Items {
		if image == "" || service.Annotations[imageAnnotation] == image {
			names = append(names, service.Name)
		}
	}
	return names
}

// awaitNoService waits until no Service is left. With its pod deleted, a Service is collected once
// it is a minute old.
func (sys *system) awaitNoService(ctx context.Context, t testing.TB) {
	t.Helper()
	suite.Until(ctx, t, "the Services without a pod are gone", func() (bool, string) {
		left := sys.serviceNames(ctx, t, "")
		return len(left) == 0, fmt.Sprint(left)
	})
}
