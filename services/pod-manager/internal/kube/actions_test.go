// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kube"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// observed returns the last observation of the events.
func observed(t *testing.T, events []pool.Event) pool.Observation {
	t.Helper()
	for _, e := range slices.Backward(events) {
		if o, ok := e.(pool.PodObserved); ok {
			return o.Observation
		}
	}
	t.Fatalf("got %+v, want an observation", events)
	return pool.Observation{}
}

func TestCreate(t *testing.T) {
	tests := map[string]struct {
		reason  string
		podIP   bool
		want    []string
		address string
	}{
		"service": {
			"a Service is made at the same time, and its name is the address",
			false,
			[]string{"create pods " + podName, "create services " + id},
			address,
		},
		"pod-ip": {"no Service takes any time", true, []string{"create pods " + podName}, "10.1.2.3:9446"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := start(t, func(c *kube.Config) { c.PodIP = tc.podIP })
				w.create()
				o := observed(t, w.events())
				if o.Name != podName || o.UID == "" || o.Function != fn || o.Slot != 1 || o.Address != "" {
					t.Errorf("got %+v of a pod without an address", o)
				}
				if diff := cmp.Diff(tc.want, w.requests()); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
				pod := w.pod(t)
				runs(pod)
				w.update(t, pod)
				o = observed(t, w.events())
				if o.Address != tc.address || o.Phase != pool.PhaseConnecting {
					t.Errorf("address %q in phase %v, want %q: %s", o.Address, o.Phase, tc.address, tc.reason)
				}
			})
		})
	}
}

// TestCreateIsReportedAtOnce checks that a creation does not wait for the informer of pods.
func TestCreateIsReportedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{client: client()}
		w.fails("watch", "pods", func() error { return errGone })
		w.run(t, nil)
		synctest.Wait()
		w.create()
		if o := observed(t, w.events()); o.Name != podName || o.UID == "" {
			t.Errorf("got %+v", o)
		}
	})
}

func TestCreateFindsPod(t *testing.T) {
	t.Run("that runs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			pod, service := existing()
			w := start(t, nil, pod, service)
			w.events()
			w.create()
			o := observed(t, w.events())
			if o.UID != string(pod.UID) || o.Address != address || o.Problem.Kind != pool.None {
				t.Errorf("got %+v, want the pod that is there", o)
			}
		})
	})
	t.Run("that is being deleted", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			pod, service := existing()
			pod.DeletionTimestamp = new(metav1.Now())
			pod.Finalizers = []string{"example.com/stay"}
			w := start(t, nil, pod, service)
			w.events()
			w.create()
			events := w.events()
			if o := observed(t, events); !o.Deleting {
				t.Errorf("got %+v, want that it is being deleted", o)
			}
			failed, ok := events[len(events)-1].(pool.CreateFailed)
			if !ok || failed.Problem.Kind != pool.Held || !strings.Contains(failed.Problem.Reason, "is being deleted") {
				t.Errorf("got %+v in the end, want that another one may succeed", events[len(events)-1])
			}
			if got := w.serviceNames(t); got != id {
				t.Errorf("Services are %q: that of the other one is not ours to delete", got)
			}
		})
	})
	t.Run("of another function runner", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := start(t, nil, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: podName, Namespace: namespace}})
			w.create()
			events := w.events()
			failed, ok := events[len(events)-1].(pool.CreateFailed)
			if !ok || failed.Problem.Kind != pool.Fatal || !strings.Contains(failed.Problem.Reason, "did not create") {
				t.Errorf("got %+v, want at once that the name is taken: it would be waited for in vain", events)
			}
		})
	})
	t.Run("that goes meanwhile", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := start(t, nil)
			first := true
			w.fails("create", "pods", func() error {
				if first {
					first = false
					return apierrors.NewAlreadyExists(pods, podName)
				}
				return nil
			})
			w.create()
			<-time.After(time.Second)
			if o := observed(t, w.events()); o.UID == "" || o.Problem.Kind != pool.None {
				t.Errorf("got %+v, want a pod", o)
			}
		})
	})
}

func TestCreateFails(t *testing.T) {
	quota := "exceeded quota: fns, requested: pods=1, used: pods=10, limited: pods=10"
	tests := map[string]struct {
		reason string
		err    error
		kind   pool.ProblemKind
		text   string
	}{
		"quota": {
			"callers need to know which quota",
			apierrors.NewForbidden(pods, podName, errors.New(quota)), pool.Full, quota,
		},
		"limit range": {
			"a user has to change one of them",
			apierrors.NewForbidden(pods, podName, errors.New("maximum memory usage per Container is 512Mi, but limit is 1Gi")),
			pool.Fatal, "maximum memory usage per Container is 512Mi, but limit is 1Gi",
		},
		"token": {
			"the pod of this replica was deleted with force",
			apierrors.NewUnauthorized("token expired"), pool.Lost, "does not accept this replica's token",
		},
		"pod security": {
			"another one like it is refused too",
			apierrors.NewForbidden(pods, podName, errors.New(`violates PodSecurity "restricted:latest"`)), pool.Fatal,
			"violates PodSecurity",
		},
		"invalid": {
			"so is one with a wrong template",
			apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), podName, nil), pool.Fatal,
			"is invalid",
		},
		"no namespace": {
			"a user has to create it",
			apierrors.NewNotFound(corev1.Resource("namespaces"), namespace), pool.Fatal, `namespaces "fns" not found`,
		},
		"timeout": {
			"another attempt may succeed",
			apierrors.NewServerTimeout(pods, "create", 1), pool.Held, "could not be completed at this time",
		},
		"unavailable": {"it is busy", apierrors.NewServiceUnavailable("starting"), pool.Held, "starting"},
		"webhook": {
			"a webhook that is away comes back",
			apierrors.NewInternalError(errors.New("failed calling webhook")), pool.Lost, "failed calling webhook",
		},
		"away": {"the connection is refused", errGone, pool.Held, "connection refused"},
		"too many": {
			"its Retry-After is longer than any caller waits",
			apierrors.NewTooManyRequests("slow down", 60), pool.Held, "slow down",
		},
		"new quota": {
			"it is counted soon",
			apierrors.NewForbidden(pods, podName, errors.New("status unknown for quota: fns, resources: count/pods")),
			pool.Held, "status unknown for quota",
		},
		"contention": {
			"that of quotas passes",
			apierrors.NewConflict(corev1.Resource("resourcequotas"), "fns", errors.New("the object has been modified")),
			pool.Held, "has been modified",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := start(t, nil)
				w.fails("create", "pods", func() error { return tc.err })
				begin := time.Now()
				w.create()
				<-time.After(10 * time.Second)
				events := w.events()
				failed, ok := events[len(events)-1].(pool.CreateFailed)
				if len(events) != 1 || !ok || failed.Name != podName || failed.Problem.Kind != tc.kind ||
					!strings.Contains(failed.Problem.Reason, tc.text) {
					t.Errorf("got %+v, want %q: %s", events, tc.text, tc.reason)
				}
				if tc.kind == pool.Fatal && w.serviceNames(t) != "" {
					t.Errorf("Services are %q, want none without a pod", w.serviceNames(t))
				}
				if time.Since(begin) > 10*time.Second {
					t.Error("the failure took longer than any caller waits")
				}
			})
		})
	}
}

func TestCreateTriesAgain(t *testing.T) {
	for name, err := range map[string]error{
		"away":       errGone,
		"busy":       apierrors.NewTooManyRequests("slow down", 1),
		"contention": apierrors.NewConflict(pods, podName, errors.New("quota")),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := start(t, nil)
				begin := time.Now()
				for _, resource := range []string{"pods", "services"} {
					w.fails("create", resource, func() error {
						if time.Since(begin) < 2*time.Second {
							return err
						}
						return nil
					})
				}
				w.create()
				<-time.After(5 * time.Second)
				if o := observed(t, w.events()); o.Name != podName || w.serviceNames(t) != id {
					t.Errorf("got %+v, with Services %q", o, w.serviceNames(t))
				}
			})
		})
	}
}

// TestServiceFails has pods without a Service: the pools hear why, and delete them.
func TestServiceFails(t *testing.T) {
	services := corev1.Resource("services")
	errWebhook := apierrors.NewInternalError(errors.New("failed calling webhook"))
	tests := map[string]struct {
		reason string
		found  bool
		err    error
		want   pool.ProblemKind
	}{
		"refused": {
			"the next pod would have none either",
			false, apierrors.NewForbidden(services, id, errors.New("exceeded quota")), pool.Fatal,
		},
		"away": {"the next pod may have one", false, errGone, pool.Lost},
		"refused for a find": {
			"a pod without a Service is of no use",
			true, apierrors.NewForbidden(services, id, errors.New("exceeded quota")), pool.Fatal,
		},
		"away for a find":    {"another replica may be about to make it", true, errGone, pool.Held},
		"webhook":            {"the next pod may have one", false, errWebhook, pool.Lost},
		"webhook for a find": {"the Service of a pod that serves may exist", true, errWebhook, pool.Held},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{client: client()}
				if tc.found {
					pod, _ := existing()
					pod.CreationTimestamp = metav1.Now()
					w = &world{client: client(pod)}
				}
				w.fails("create", "services", func() error { return tc.err })
				w.run(t, nil)
				w.events()
				w.create()
				<-time.After(10 * time.Second)
				events := w.events()
				if !slices.ContainsFunc(events, func(e pool.Event) bool {
					o, ok := e.(pool.PodObserved)
					return ok && o.Problem.Kind == tc.want && strings.Contains(o.Problem.Reason, tc.err.Error()) && o.Address == ""
				}) {
					t.Errorf("got %+v, want the problem of kind %v: %s", events, tc.want, tc.reason)
				}
			})
		})
	}
}

func TestDelete(t *testing.T) {
	request := func(change func(*pool.Delete)) pool.Delete {
		d := pool.Delete{Name: podName, UID: "uid-" + podName, Function: fn, Slot: 1}
		change(&d)
		return d
	}
	tests := map[string]struct {
		reason   string
		action   pool.Delete
		err      error
		want     []pool.Event
		services string
	}{
		"as decided": {
			"the pod goes with its Service",
			request(func(*pool.Delete) {}), nil,
			[]pool.Event{pool.PodGone{Name: podName, UID: "uid-" + podName}},
			"",
		},
		"another pod": {
			"it has the name by now", request(func(d *pool.Delete) { d.UID = "old" }), nil,
			[]pool.Event{pool.DeleteFailed{Name: podName, UID: "old"}},
			id,
		},
		"as it was seen": {
			"an unused pod goes", request(func(d *pool.Delete) { d.Version = "7" }), nil,
			[]pool.Event{pool.PodGone{Name: podName, UID: "uid-" + podName}},
			"",
		},
		"changed": {
			"another replica may use it", request(func(d *pool.Delete) { d.Version = "6" }), nil,
			[]pool.Event{pool.DeleteFailed{Name: podName, UID: "uid-" + podName}},
			id,
		},
		"away": {
			"the pool decides again", request(func(*pool.Delete) {}), errGone,
			[]pool.Event{pool.DeleteFailed{Name: podName, UID: "uid-" + podName}},
			id,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pod, service := existing()
				w := start(t, nil, pod, service)
				w.fails("delete", "pods", func() error { return tc.err })
				w.events()
				w.Delete(tc.action)
				<-time.After(10 * time.Second)
				events := slices.DeleteFunc(w.events(), func(e pool.Event) bool {
					_, ok := e.(pool.PodObserved) // without its Service
					return ok
				})
				if diff := cmp.Diff(tc.want, events); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
				if got := w.serviceNames(t); got != tc.services {
					t.Errorf("Services are %q, want %q: %s", got, tc.services, tc.reason)
				}
			})
		})
	}
}

// TestDeleteOfWhatIsGone has a pod go unseen. Its successor finds no Service that is
// about to be deleted.
func TestDeleteOfWhatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, service := existing()
		service.CreationTimestamp = metav1.Now()
		w := &world{client: client(service)}
		w.run(t, func(c *kube.Config) { c.Client = slow{w.client} })
		synctest.Wait()
		w.Delete(pool.Delete{Name: podName, UID: "uid-1", Function: fn, Slot: 1})
		if diff := cmp.Diff([]pool.Event{pool.PodGone{Name: podName, UID: "uid-1"}}, w.events()); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		w.create() // with another name in truth, and the same id
		<-time.After(5 * time.Second)
		if o := observed(t, w.events()); o.Name != podName || w.serviceNames(t) != id {
			t.Errorf("got %+v, with Services %q", o, w.serviceNames(t))
		}
	})
}

func TestDeleteKeepsServiceOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod, service := existing()
		twin := pod.DeepCopy()
		twin.Name = id + "-zzzzz"
		twin.UID = "uid-twin"
		w := start(t, nil, pod, twin, service)
		w.Delete(pool.Delete{Name: podName, UID: string(pod.UID), Function: fn, Slot: 1})
		w.events()
		if got := w.serviceNames(t); got != id {
			t.Errorf("Services are %q, want that of the twin", got)
		}
	})
}

func TestExtend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod, service := existing()
		w := start(t, nil, pod, service)
		w.events()
		begin := time.Now()
		w.fails("patch", "pods", func() error {
			if time.Since(begin) < time.Second {
				return errGone
			}
			return nil
		})
		until := begin.Add(2 * time.Hour).Truncate(time.Second)
		w.Extend(pool.Extend{Name: podName, UID: string(pod.UID), ReclaimAfter: until})
		<-time.After(5 * time.Second)
		if o := observed(t, w.events()); !o.ReclaimAfter.Equal(until) {
			t.Errorf("it may be collected after %v, want %v", o.ReclaimAfter, until)
		}
		changed := w.pod(t)
		delete(changed.Annotations, podspec.AnnotationReclaimAfter)
		delete(pod.Annotations, podspec.AnnotationReclaimAfter)
		if diff := cmp.Diff(pod.Annotations, changed.Annotations); diff != "" {
			t.Errorf("other annotations changed (-want +got):\n%s", diff)
		}
	})
}

// TestAnotherPodIsNotExtended has a pod replaced by another of its name before it is extended.
func TestAnotherPodIsNotExtended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod, service := existing()
		w := start(t, nil, pod, service)
		w.Extend(pool.Extend{Name: podName, UID: "former", ReclaimAfter: time.Now().Add(2 * time.Hour)})
		<-time.After(5 * time.Second)
		synctest.Wait()
		if diff := cmp.Diff(pod.ObjectMeta, w.pod(t).ObjectMeta); diff != "" {
			t.Errorf("the pod changed (-want +got):\n%s", diff)
		}
	})
}

// TestExtensionsDoNotPileUp has the Kubernetes API away while a pod is in use.
func TestExtensionsDoNotPileUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod, service := existing()
		w := start(t, nil, pod, service)
		w.events()
		begin := time.Now()
		done := 0
		w.fails("patch", "pods", func() error {
			if time.Since(begin) < time.Minute {
				return errGone
			}
			done++
			return nil
		})
		var until time.Time
		for time.Since(begin) < time.Minute {
			until = time.Now().Add(time.Hour).Truncate(time.Second)
			w.Extend(pool.Extend{Name: podName, UID: string(pod.UID), ReclaimAfter: until})
			<-time.After(time.Second)
		}
		<-time.After(time.Minute)
		if o := observed(t, w.events()); !o.ReclaimAfter.Equal(until) || done > 2 {
			t.Errorf("it may be collected after %v, want %v, as %d patches say", o.ReclaimAfter, until, done)
		}
	})
}

// TestBurst has as many pods asked for as there may be.
func TestBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 200
		w := start(t, nil)
		for slot := 1; slot <= many; slot++ {
			w.Create(pool.Create{Function: fn, Slot: slot, Name: podNameIn(slot)}, workload)
		}
		names := map[string]bool{}
		for _, e := range w.events() {
			if o, ok := e.(pool.PodObserved); ok {
				names[o.Name] = true
			}
		}
		if len(names) != many {
			t.Errorf("got events about %d pods, want %d", len(names), many)
		}
	})
}
