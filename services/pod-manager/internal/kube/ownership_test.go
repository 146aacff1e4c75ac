// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kube"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// deletes asks for the deletion of the existing pod.
func (w *world) deletes() {
	w.Delete(pool.Delete{Name: podName, UID: "uid-" + podName, Function: fn, Slot: 1})
}

// TestReplicaDeletesOnlyWhatItOwns has a replica that has lost its functions since it decided.
func TestReplicaDeletesOnlyWhatItOwns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod, service := existing()
		orphan := service.DeepCopy()
		orphan.Name = "orphan"
		orphan.Labels = map[string]string{}
		orphan.Spec.Selector = map[string]string{}
		for key := range service.Labels {
			orphan.Labels[key], orphan.Spec.Selector[key] = "orphan", "orphan"
		}
		var log bytes.Buffer
		w := start(t, func(c *kube.Config) {
			c.Owns = func(string) bool { return false }
			c.Telemetry.Log = slog.New(slog.NewTextHandler(&log, nil))
		}, pod, service, orphan)
		w.events()
		w.deletes()
		events := w.events()
		if want := (pool.DeleteFailed{Name: podName, UID: "uid-" + podName}); len(events) != 1 || events[0] != want {
			t.Errorf("got %+v, want that another replica decides", events)
		}
		if !strings.Contains(log.String(), "another replica owns the function, or this replica has not listed the Leases") {
			t.Errorf("the log does not say why the pod stays: %s", log.String())
		}
		<-time.After(10 * time.Minute)
		synctest.Wait()
		for _, request := range w.requests() {
			if strings.HasPrefix(request, "delete") {
				t.Errorf("the request %q: another replica owns the function, and collects its garbage", request)
			}
		}
	})
}

// TestEvictionsAreCounted has the API server refuse a deletion, and then accept it twice, since the pod takes long to
// go.
func TestEvictionsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod, service := existing()
		reader := sdkmetric.NewManualReader()
		w := start(t, func(c *kube.Config) {
			c.Telemetry.Meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
		}, pod, service)
		var answer error
		w.reacts("delete", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, answer })
		answer = apierrors.NewForbidden(pods, podName, errors.New("no Role allows it"))
		for i, want := range []int64{0, 1, 1} {
			w.Delete(pool.Delete{Name: podName, UID: "uid-" + podName, Function: fn, Slot: 1, Eviction: "ttl"})
			w.events()
			if got := evictions(t, reader); got != want {
				t.Errorf("after request %d, fn.pod.evictions is %d, want %d", i+1, got, want)
			}
			answer = nil
		}
	})
}

// evictions returns the metric fn.pod.evictions for pods whose time to live ended.
func evictions(t *testing.T, reader sdkmetric.Reader) int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "fn.pod.evictions" {
			for _, point := range sum.DataPoints {
				if reason, _ := point.Attributes.Value("reason"); reason.AsString() == "ttl" {
					return point.Value
				}
			}
		}
	}
	return 0
}

// TestReplicaEvictsForeignPods has a replica delete a pod of another owner for its capacity.
func TestReplicaEvictsForeignPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod, service := existing()
		w := start(t, func(c *kube.Config) { c.Owns = func(string) bool { return false } }, pod, service)
		w.events()
		w.Delete(pool.Delete{Name: podName, UID: "uid-" + podName, Function: fn, Slot: 1, Foreign: true})
		<-time.After(time.Second)
		synctest.Wait()
		deleted := func(request string) bool { return strings.HasPrefix(request, "delete pods") }
		if requests := w.requests(); !slices.ContainsFunc(requests, deleted) {
			t.Errorf("requests %q, want that the pod is deleted", requests)
		}
	})
}

// TestServiceOfTwoPodsStays: a pod's successor in its slot has the same Service.
func TestServiceOfTwoPodsStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod, service := existing()
		successor := pod.DeepCopy()
		successor.Name = podName + "-2"
		successor.UID = "uid-2"
		w := start(t, nil, pod, service, successor)
		w.deletes()
		<-time.After(time.Minute)
		synctest.Wait()
		for _, request := range w.requests() {
			if strings.Contains(request, "services") {
				t.Errorf("the request %q: the Service is that of the other pod", request)
			}
		}
		if got := w.serviceNames(t); got != id {
			t.Errorf("Services are %q, want the other pod's", got)
		}
	})
}

// TestServiceIsMadeAgainAfterARefusedDeletion: the pod stays, so it needs its Service.
func TestServiceIsMadeAgainAfterARefusedDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod, service := existing()
		w := start(t, nil, pod, service)
		w.fails("delete", "pods", func() error {
			return apierrors.NewForbidden(pods, podName, errors.New("no Role allows it"))
		})
		w.deletes()
		w.events()
		w.deleteService(t)
		<-time.After(2 * time.Minute)
		synctest.Wait()
		if got := w.serviceNames(t); got != id {
			t.Errorf("Services are %q, want the pod's", got)
		}
	})
}

// TestServiceStaysIfThePodMayExist: a request without an answer may have created the pod.
func TestServiceStaysIfThePodMayExist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, nil)
		w.fails("create", "pods", func() error { return errGone })
		w.create()
		<-time.After(10 * time.Second)
		if got := w.serviceNames(t); got != id {
			t.Errorf("Services are %q, want that of the pod", got)
		}
	})
}
