// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package cluster_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// BenchmarkBarePod measures the time from creating a pod whose image is on the node until it is
// ready: no cold start can be faster.
func BenchmarkBarePod(b *testing.B) {
	namespace := s.Namespace(b)
	runBarePod(b, namespace, "warm-up") // pulls the image to the node
	var times []time.Duration
	for b.Loop() {
		times = append(times, runBarePod(b, namespace, fmt.Sprintf("pod-%d", len(times))))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Milliseconds()), "p50-ms")
	b.ReportMetric(float64(times[len(times)-1].Milliseconds()), "max-ms")
	b.ReportMetric(0, "ns/op") // it would include the deletions
}

// runBarePod returns the time until the pod was ready. It also waits for its deletion, which would
// slow down the next one.
func runBarePod(b *testing.B, namespace, name string) time.Duration {
	ctx := suite.Context(b)
	pods := s.Client.CoreV1().Pods(namespace)
	events, err := pods.Watch(ctx,
		metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()})
	if err != nil {
		b.Fatal(err)
	}
	defer events.Stop()
	start := time.Now()
	s.Create(ctx, b, namespace, s.BarePod(name))
	await(b, events, func(event watch.Event) bool {
		pod, ok := event.Object.(*corev1.Pod)
		return ok && suite.Ready(pod)
	})
	ready := time.Since(start)
	if err := pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))}); err != nil {
		b.Fatal(err)
	}
	await(b, events, func(event watch.Event) bool { return event.Type == watch.Deleted })
	return ready
}

func await(b *testing.B, events watch.Interface, wanted func(watch.Event) bool) {
	b.Helper()
	for event := range events.ResultChan() {
		if event.Type == watch.Error {
			b.Fatalf("watch the pod: %v", apierrors.FromObject(event.Object))
		}
		if wanted(event) {
			return
		}
	}
	b.Fatal("the watch ended before the pod was ready")
}
