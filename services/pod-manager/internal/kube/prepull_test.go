// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/apitest"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kube"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kubeclient"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// ahead is a Kubernetes in memory, and a replica that has its nodes pull images.
type ahead struct {
	*apitest.Server
	client kubernetes.Interface
	link   *apitest.Link
	listed atomic.Pointer[podspec.Workload]
	owns   atomic.Bool
}

// newAhead returns a cluster with nodes of these names. All functions are those of its replica.
func newAhead(t *testing.T, nodes ...string) *ahead {
	t.Helper()
	a := &ahead{Server: apitest.New(nil)}
	a.listed.Store(&workload)
	a.owns.Store(true)
	for _, name := range nodes {
		a.addNode(t, name)
	}
	a.client, a.link = a.Client("pod-manager")
	return a
}

// run runs the replica.
func (a *ahead) run(t *testing.T) {
	t.Helper()
	p, err := kube.NewPrepull(kube.PrepullConfig{
		Client: a.client, Namespace: namespace, Builder: podspec.Builder{Namespace: namespace, MaxMessageBytes: 1 << 20},
		Templates: builtin(t), Clock: kubeclient.NewClock(slog.New(slog.DiscardHandler)), Telemetry: telemetry.Discard(),
		Listed: func(context.Context) ([]podspec.Workload, error) { return []podspec.Workload{*a.listed.Load()}, nil },
		Owns:   func(string) bool { return a.owns.Load() },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func (a *ahead) addNode(t *testing.T, name string) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if err := a.Create("nodes", node); err != nil {
		t.Fatal(err)
	}
}

// expect checks after some time how many pods there are, and how many have been created in all.
func (a *ahead) expect(t *testing.T, reason string, passed time.Duration, pods, created int) {
	t.Helper()
	<-time.After(passed)
	synctest.Wait()
	if got, made := len(a.Pods()), a.Requests("create pods"); got != pods || made != created {
		t.Errorf("%s: there are %d pods of %d created ones, want %d of %d", reason, got, made, pods, created)
	}
}

// end has all containers come into a state, as kubelets report it, and takes away pods that are deleted.
func (a *ahead) end(state corev1.ContainerState) {
	for _, pod := range a.Pods() {
		a.Change("pods", pod.Name, func(o apitest.Object) {
			o.(*corev1.Pod).Status.ContainerStatuses = []corev1.ContainerStatus{{Name: podspec.ContainerName, State: state}}
		})
	}
	<-time.After(2 * time.Second)
	synctest.Wait()
	for _, pod := range a.Pods() {
		if pod.DeletionTimestamp != nil {
			a.Remove("pods", pod.Name, pod.UID)
		}
	}
}

var done = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}

func TestImagesArePulledAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAhead(t, "a", "b")
		a.run(t)
		a.expect(t, "each node gets a pod", time.Second, 2, 2)
		for _, pod := range a.Pods() {
			if pod.Labels[podspec.LabelPrepull] == "" || pod.Labels[podspec.LabelID] != "" {
				t.Errorf("pod %s has the labels %v", pod.Name, pod.Labels)
			}
		}
		a.expect(t, "they pull", time.Minute, 2, 2)
		a.end(done)
		a.expect(t, "pods that are done are deleted, and the images remembered", time.Hour, 0, 2)
		a.addNode(t, "c")
		a.expect(t, "a new node gets one", time.Minute, 1, 3)
		a.end(done)
		moved := workload
		moved.Function.Digest = "sha256:11"
		a.listed.Store(&moved)
		a.expect(t, "each node gets the new digest", time.Minute, 3, 6)
		if services := a.Requests("create services"); services != 0 {
			t.Errorf("%d Services are created for them", services)
		}
	})
}

// TestRestartPullsNothingAgain runs a replica that remembers nothing: the status of the node names the image.
func TestRestartPullsNothingAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAhead(t, "a")
		a.Change("nodes", "a", func(o apitest.Object) {
			o.(*corev1.Node).Status.Images = []corev1.ContainerImage{
				{Names: []string{"example.com/fns/set:v1"}}, {Names: []string{"example.com/fns/set@" + digest}},
			}
		})
		a.run(t)
		a.expect(t, "the node has it", time.Hour, 0, 0)
	})
}

func TestFailedPullsAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAhead(t, "a")
		a.run(t)
		a.expect(t, "at first", time.Second, 1, 1)
		a.end(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}})
		a.expect(t, "the pod goes, the next one comes later", 30*time.Second, 0, 1)
		a.expect(t, "the backoff is over", time.Minute, 1, 2)
		a.end(done)
		a.expect(t, "it is pulled", time.Hour, 0, 2)
	})
}

// TestPrepullIsForOwners has another replica own the functions for an hour, and the Kubernetes API refuse a pod then.
func TestPrepullIsForOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAhead(t, "a")
		a.run(t)
		a.expect(t, "it owns the function", time.Second, 1, 1)
		a.owns.Store(false)
		a.addNode(t, "b")
		a.end(done)
		a.expect(t, "it does not any more", time.Hour, 1, 1)
		if pod := a.Pods()[0]; pod.DeletionTimestamp != nil {
			t.Errorf("it deletes the pod %s", pod.Name)
		}
		a.owns.Store(true)
		a.link.Refuse("create pods", apierrors.NewForbidden(pods, "", errors.New("quota")))
		a.expect(t, "a creation fails, for the new node", 20*time.Second, 1, 2)
		if pod := a.Pods()[0]; pod.DeletionTimestamp == nil {
			t.Errorf("it does not delete the pod %s, which has ended", pod.Name)
		}
		a.end(done)
		a.link.Refuse("create pods", nil)
		a.expect(t, "the next one succeeds", 3*time.Minute, 1, 3)
	})
}

// TestPrepullWithoutRights has the Kubernetes API refuse the list of nodes.
func TestPrepullWithoutRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAhead(t, "a")
		a.link.Forbid("nodes", true)
		a.run(t)
		a.expect(t, "the nodes are not known", time.Minute, 0, 0)
		a.link.Forbid("nodes", false)
		a.expect(t, "they are known", 2*time.Minute, 1, 1)
	})
}
