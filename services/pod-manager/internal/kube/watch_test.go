// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/logtest"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kube"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// journal is a log in memory.
type journal struct{ text logtest.Log }

// count counts the lines with a text in them.
func (j *journal) count(text string) int { return j.text.Count(text) }

// telemetry returns telemetry that logs here.
func (j *journal) telemetry() *telemetry.Telemetry {
	t := telemetry.Discard()
	t.Log = slog.New(slog.NewTextHandler(&j.text, nil))
	return t
}

func isSynced(w *world) bool {
	select {
	case <-w.Synced():
		return true
	default:
		return false
	}
}

func TestAdoption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running, service := existing()
		pending := running.DeepCopy()
		pending.Name = podNameIn(2)
		pending.UID = "uid-2"
		pending.Spec.NodeName = ""
		pending.Status = corev1.PodStatus{}
		foreign := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: "porch", Namespace: namespace, Labels: map[string]string{podspec.LabelID: "porch"},
		}}
		w := &world{client: client(running, pending, foreign, service)}
		w.run(t, nil)
		<-w.Synced()
		last := map[string]pool.Observation{}
		for _, e := range w.events() {
			if o, ours := e.(pool.PodObserved); ours {
				last[o.Name] = o.Observation
			} else if want := (pool.ForeignObserved{Name: "porch", ID: "porch"}); e != want {
				t.Errorf("got %+v, want %+v", e, want)
			}
		}
		if len(last) != 2 || last[podName].Address != address || last[podNameIn(2)].Address != "" {
			t.Errorf("got events %+v, want both pods of ours, one with an address", last)
		}
	})
}

func TestSyncedOnceKubernetesAnswers(t *testing.T) {
	for _, resource := range []string{"pods", "services"} {
		synctest.Test(t, func(t *testing.T) {
			pod, service := existing()
			w := &world{client: client(pod, service)}
			begin := time.Now()
			w.fails("list", resource, func() error {
				if time.Since(begin) < 30*time.Second {
					return errGone
				}
				return nil
			})
			w.run(t, nil)
			<-time.After(29 * time.Second)
			synctest.Wait()
			if isSynced(w) {
				t.Errorf("it is said that all is known, without an answer about %s", resource)
			}
			<-time.After(3 * time.Second)
			synctest.Wait()
			if !isSynced(w) {
				t.Errorf("it is not said that all is known, two seconds after the answer about %s", resource)
			}
		})
	}
}

// TestOutage has the API server away for half a minute, in which a pod goes.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod, service := existing()
		w := &world{client: client(pod, service)}
		var watches []*watch.FakeWatcher
		var away atomic.Bool
		w.client.PrependWatchReactor("pods", func(clienttesting.Action) (bool, watch.Interface, error) {
			if away.Load() {
				return true, nil, errGone
			}
			watches = append(watches, watch.NewFake())
			return true, watches[len(watches)-1], nil
		})
		w.fails("list", "pods", func() error {
			if away.Load() {
				return errGone
			}
			return nil
		})
		log := &journal{}
		w.run(t, func(c *kube.Config) { c.Telemetry = log.telemetry() })
		w.events()
		<-time.After(time.Minute)
		synctest.Wait()

		away.Store(true)
		watches[0].Stop()
		if err := w.client.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), namespace, podName); err != nil {
			t.Fatal(err)
		}
		<-time.After(30 * time.Second)
		if events := w.events(); len(events) != 0 {
			t.Errorf("got %+v while nothing is known", events)
		}
		away.Store(false)
		<-time.After(2 * time.Second)
		synctest.Wait()
		if len(watches) < 2 {
			t.Fatal("the watch was not taken up again, two seconds after the API server came back")
		}
		watches[1].Error(&metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: 410})
		<-time.After(5 * time.Second)
		if diff := cmp.Diff([]pool.Event{pool.PodGone{Name: podName, UID: string(pod.UID)}}, w.events()); diff != "" {
			t.Errorf("afterwards (-want +got):\n%s", diff)
		}
		if began, ended := log.count("interrupted"), log.count("watch restored"); began != 1 || ended != 1 {
			t.Errorf("logged %d interruptions and %d restored watches, want one each:\n%s", began, ended, &log.text)
		}
	})
}

// TestForbiddenWatch has a role that allows to list only.
func TestForbiddenWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod, service := existing()
		w := &world{client: client(pod, service)}
		w.client.PrependWatchReactor("pods", func(clienttesting.Action) (bool, watch.Interface, error) {
			return true, nil, apierrors.NewForbidden(pods, "", errors.New("cannot watch"))
		})
		log := &journal{}
		w.run(t, func(c *kube.Config) { c.Telemetry = log.telemetry() })
		w.events()
		pod.Status.PodIP = "10.9.9.9"
		w.update(t, pod)
		<-time.After(5 * time.Minute)
		if o := observed(t, w.events()); o.Name != podName {
			t.Errorf("got %+v, want the change", o)
		}
		if n := log.count("level="); n != 1 {
			t.Errorf("%d lines in the log, want one:\n%s", n, &log.text)
		}
	})
}

// TestEventsComeInOrder has the answer to a creation come after the pod was seen running.
func TestEventsComeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{client: client()}
		w.run(t, func(c *kube.Config) { c.Client = slow{w.client} })
		synctest.Wait()
		w.create()
		synctest.Wait()
		pod := w.pod(t)
		runs(pod)
		w.update(t, pod)
		if o := observed(t, w.events()); o.Address != address {
			t.Fatalf("got the address %q, want %q", o.Address, address)
		}
		<-time.After(2 * time.Second)
		if o := observed(t, w.events()); o.Address != address {
			t.Errorf("got %+v, which is old: it runs", o)
		}
	})
}

func TestNoRequestsAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod, service := existing()
		w := start(t, nil, pod, service)
		w.client.ClearActions()
		<-time.After(4 * time.Minute) // watches last for five at least
		synctest.Wait()
		if actions := w.client.Actions(); len(actions) > 0 {
			t.Errorf("asked for %v while nothing happens", actions)
		}
	})
}
