// SPDX-License-Identifier: Apache-2.0

package pullsecret_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pullsecret"
)

// cluster records the pods that are created.
type cluster struct {
	pullsecret.Cluster
	created chan string
}

func (c cluster) Create(action pool.Create, _ podspec.Workload) { c.created <- action.Name }

// guard puts a guard before a cluster, and returns what the cluster and the pools hear.
func (w *world) guard() (pullsecret.Guard, <-chan string, <-chan pool.Event) {
	created, sent := make(chan string, 10), make(chan pool.Event, 10)
	send := func(e pool.Event) { sent <- e }
	return pullsecret.Guard{Cluster: cluster{created: created}, Keeper: w.Keeper, Send: send}, created, sent
}

// private is a pod whose registry wants credentials.
var private = podspec.Workload{Function: podspec.Function{PullSecret: true}}

// TestPodWaitsForThePullSecret also if its function needs none: all pods refer to it, for the wrapper server's image.
func TestPodWaitsForThePullSecret(t *testing.T) {
	for name, what := range map[string]podspec.Workload{"private": private, "public": {}} {
		t.Run(name, func(t *testing.T) {
			writable := make(chan struct{})
			w := start(t, login("s3cret"), time.Hour, func(string) error { <-writable; return nil })
			guard, created, _ := w.guard()
			guard.Create(pool.Create{Name: name}, what)
			if len(created) > 0 {
				t.Error("it is created before the Secret is read")
			}
			close(writable)
			<-created
			if len(w.writes) != 1 {
				t.Error("it is created before the Secret is there")
			}
		})
	}
}

// TestPublicFunctionRunsWithoutThePullSecret, because its pod may need no credentials.
func TestPublicFunctionRunsWithoutThePullSecret(t *testing.T) {
	w := start(t, "no docker configuration", time.Hour, nil)
	guard, created, sent := w.guard()
	guard.Create(pool.Create{Name: "private"}, private)
	guard.Create(pool.Create{Name: "public"}, podspec.Workload{})
	if name := <-created; name != "public" {
		t.Errorf("%s is created", name)
	}
	if event := <-sent; event.(pool.CreateFailed).Name != "private" {
		t.Errorf("sent %+v", event)
	}
}

// TestNextPodHasItsPullSecret deletes and changes the pull secret from outside, right before a
// pod is created that needs it.
func TestNextPodHasItsPullSecret(t *testing.T) {
	w := start(t, login("s3cret"), time.Hour, nil)
	written := <-w.writes
	guard, created, _ := w.guard()
	secrets := w.client.CoreV1().Secrets(namespace)
	if err := secrets.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	guard.Create(pool.Create{Name: "first"}, private)
	<-created
	holds(t, <-w.writes, "s3cret")
	changed := written.DeepCopy()
	changed.Data[corev1.DockerConfigJsonKey] = []byte(login("wrong"))
	if _, err := secrets.Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	<-w.writes // from outside
	guard.Create(pool.Create{Name: "second"}, private)
	<-created
	holds(t, <-w.writes, "s3cret")
}

// TestPullSecretThatCannotBeSeen has the Kubernetes API refuse to show what was written.
func TestPullSecretThatCannotBeSeen(t *testing.T) {
	var away atomic.Bool
	w := start(t, login("s3cret"), time.Hour, func(string) error {
		if away.Load() {
			return apierrors.NewForbidden(corev1.Resource("secrets"), name, errors.New("no such right"))
		}
		return nil
	})
	if err := w.answer(); err != nil {
		t.Fatal(err)
	}
	away.Store(true)
	if err := w.answer(); err != nil {
		t.Errorf("got %v: the pod shows best whether its credentials are there", err)
	}
}

func TestWhoWaitsHearsWhy(t *testing.T) {
	resource := corev1.Resource("secrets")
	tests := map[string]struct {
		reason, file string
		refusal      error
		want         pool.ProblemKind
		says         string
	}{
		"forbidden": {
			"a user has to grant the right",
			login("s3cret"), apierrors.NewForbidden(resource, name, errors.New("no such right")), pool.Fatal, "no such right",
		},
		"busy":     {"it passes", login("s3cret"), apierrors.NewTooManyRequestsError("later"), pool.Lost, "later"},
		"no file":  {"a user has to provide it", "", nil, pool.Fatal, ".dockerconfigjson"},
		"bad file": {"a user has to repair it", "s3cret", nil, pool.Fatal, "not a docker configuration"},
	}
	for label, tc := range tests {
		t.Run(label, func(t *testing.T) {
			w := start(t, tc.file, time.Hour, func(string) error { return tc.refusal })
			guard, _, sent := w.guard()
			guard.Create(pool.Create{Name: "pod"}, private)
			failed, ok := (<-sent).(pool.CreateFailed)
			reason := failed.Problem.Reason
			if !ok || failed.Name != "pod" || failed.Problem.Kind != tc.want || !strings.Contains(reason, tc.says) ||
				!strings.Contains(reason, "pull secret porch-fn-system/auth-secret") {
				t.Errorf("sent %+v, want kind %v that says %q: %s", failed, tc.want, tc.says, tc.reason)
			}
			if strings.Contains(failed.Problem.Reason, "s3cret") {
				t.Errorf("the reason tells what is secret: %s", failed.Problem.Reason)
			}
		})
	}
}

// TestRepairIsFoundAtOnce holds that the next pod asks again, and no time has to pass.
func TestRepairIsFoundAtOnce(t *testing.T) {
	var allowed atomic.Bool
	w := start(t, login("s3cret"), time.Hour, func(string) error {
		if allowed.Load() {
			return nil
		}
		return apierrors.NewForbidden(corev1.Resource("secrets"), name, nil)
	})
	if err := w.answer(); !apierrors.IsForbidden(err) {
		t.Fatalf("got %v, want the refusal", err)
	}
	allowed.Store(true)
	guard, created, _ := w.guard()
	guard.Create(pool.Create{Name: "pod"}, private)
	if name := <-created; name != "pod" {
		t.Errorf("%s is created", name)
	}
}

// TestAnAnswerIsNoOlderThanTheQuestion has a pod come while an attempt is being refused:
// what was in the way may have been removed since that began.
func TestAnAnswerIsNoOlderThanTheQuestion(t *testing.T) {
	begun, refused := make(chan struct{}), make(chan struct{})
	var first atomic.Bool
	w := start(t, login("s3cret"), time.Hour, func(string) error {
		if !first.CompareAndSwap(false, true) {
			return nil
		}
		close(begun)
		<-refused
		return apierrors.NewForbidden(corev1.Resource("secrets"), name, nil)
	})
	<-begun
	guard, created, sent := w.guard()
	guard.Create(pool.Create{Name: "pod"}, private)
	close(refused)
	select {
	case <-created:
	case event := <-sent:
		t.Errorf("sent %+v, want the pod to be created", event)
	}
}
