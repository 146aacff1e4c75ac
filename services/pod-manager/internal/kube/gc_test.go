// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kube"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

func (w *world) deleteService(t *testing.T) {
	t.Helper()
	if err := w.client.CoreV1().Services(namespace).Delete(t.Context(), id, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestServiceIsMadeAgain deletes the Service of a running pod from outside.
func TestServiceIsMadeAgain(t *testing.T) {
	t.Run("at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			pod, service := existing()
			w := start(t, nil, pod, service)
			w.events()
			w.deleteService(t)
			events := w.events()
			if first := events[0].(pool.PodObserved); first.Address != "" {
				t.Errorf("got the address %q without a Service: leases would lead nowhere", first.Address)
			}
			if o := observed(t, events); o.Address != address {
				t.Errorf("got the address %q in the end, want %q", o.Address, address)
			}
			made, err := w.client.CoreV1().Services(namespace).Get(t.Context(), id, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(service.Spec, made.Spec); diff != "" {
				t.Errorf("it is another one (-want +got):\n%s", diff)
			}
		})
	})
	t.Run("after a while", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			pod, service := existing()
			w := start(t, nil, pod, service)
			begin := time.Now()
			w.fails("create", "services", func() error {
				if time.Since(begin) < 30*time.Second {
					return errGone
				}
				return nil
			})
			w.deleteService(t)
			<-time.After(2 * time.Minute)
			if o := observed(t, w.events()); o.Address != address {
				t.Errorf("got the address %q in the end, want %q", o.Address, address)
			}
		})
	})
	t.Run("at the start", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			pod, _ := existing()
			w := start(t, nil, pod)
			if o := observed(t, w.events()); o.Address != address {
				t.Errorf("got the address %q, want %q", o.Address, address)
			}
		})
	})
	t.Run("soon after the start", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			pod, _ := existing()
			pod.CreationTimestamp = metav1.Now() // by a replica that was killed right after that
			w := start(t, nil, pod)
			<-time.After(10 * time.Second)
			if o := observed(t, w.events()); o.Address != address {
				t.Errorf("got the address %q, want %q before callers leave", o.Address, address)
			}
		})
	})
	t.Run("not if the pod goes too", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			pod, service := existing()
			pod.Finalizers = []string{"example.com/stay"}
			w := start(t, nil, pod, service)
			w.Delete(pool.Delete{Name: podName, UID: string(pod.UID), Function: fn, Slot: 1})
			<-time.After(10 * time.Minute)
			synctest.Wait()
			if got := w.serviceNames(t); got != "" {
				t.Errorf("Services are %q, want none", got)
			}
		})
	})
	t.Run("not if pods need none", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			pod, service := existing()
			w := start(t, func(c *kube.Config) { c.PodIP = true }, pod, service)
			w.deleteService(t)
			<-time.After(10 * time.Minute)
			synctest.Wait()
			if got := w.serviceNames(t); got != "" {
				t.Errorf("Services are %q, want none", got)
			}
		})
	})
}

// TestOrphans has Services without a pod.
func TestOrphans(t *testing.T) {
	tests := map[string]struct {
		reason string
		podIP  bool
		age    time.Duration
		hidden bool // there is a pod that is not seen
		want   string
	}{
		"at the start":    {"a pod-manager that was killed leaves them", false, time.Hour, false, ""},
		"new":             {"its pod may be on its way, and is awaited for a minute", false, 0, false, ""},
		"other endpoints": {"they are from before", true, time.Hour, false, ""},
		"hidden":          {"the API server has the last word", false, time.Hour, true, id},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pod, service := existing()
				service.CreationTimestamp = metav1.NewTime(time.Now().Add(-tc.age))
				w := &world{client: client(service)}
				if tc.hidden {
					w.reacts("list", "pods", hide(pod))
				}
				w.run(t, func(c *kube.Config) { c.PodIP = tc.podIP })
				synctest.Wait()
				if tc.age == 0 && w.serviceNames(t) != id {
					t.Errorf("Services are %q at once: %s", w.serviceNames(t), tc.reason)
				}
				<-time.After(2 * time.Minute)
				synctest.Wait()
				if got := w.serviceNames(t); got != tc.want {
					t.Errorf("Services are %q, want %q: %s", got, tc.want, tc.reason)
				}
			})
		})
	}
}

// TestPodsOfPorchsRunnerAreLeftAlone, also after their time: they are in no pool, and use their Services.
func TestPodsOfPorchsRunnerAreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, service := existing()
		w := start(t, nil, service, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: podName, Namespace: namespace, UID: "uid", Labels: map[string]string{podspec.LabelID: id},
			Annotations: map[string]string{podspec.AnnotationReclaimAfter: "946686600"}, // in 2000, at 00:30
		}})
		<-time.After(2 * time.Hour)
		synctest.Wait()
		if requests := w.requests(); len(requests) > 0 {
			t.Errorf("requests were %q", requests)
		}
		for _, e := range w.events() {
			if foreign := (pool.ForeignObserved{Name: podName, ID: id}); e != foreign {
				t.Errorf("got %+v: the pod is in no pool", e)
			}
		}
	})
}

// hide lists a pod to those only who ask for its id.
func hide(pod *corev1.Pod) clienttesting.ReactionFunc {
	return func(a clienttesting.Action) (bool, runtime.Object, error) {
		list := &corev1.PodList{}
		if a.(clienttesting.ListAction).GetListRestrictions().Labels.String() == podspec.LabelID+"="+id {
			list.Items = append(list.Items, *pod)
		}
		return true, list, nil
	}
}
