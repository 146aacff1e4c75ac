// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kube"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kubeclient"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podname"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	namespace = "fns"
	digest    = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	reference = "example.com/fns/set:v1"
	id        = "set-v1-1-e3b0c442"
	address   = id + ".fns.svc.cluster.local:9446"
)

var (
	fn       = pool.Function{Reference: reference, Digest: digest}
	podName  = podname.PodName(reference, digest, 1, "")
	workload = podspec.Workload{Function: podspec.Function{Reference: reference, Digest: digest}}
	errGone  = errors.New("dial tcp 10.0.0.1:443: connect: connection refused")
)

// world is a cluster, the Kubernetes in memory that it is of, and the events that it sent.
type world struct {
	*kube.Cluster
	client *fake.Clientset
	stop   func()

	mu   sync.Mutex
	sent []pool.Event
}

// start runs a cluster in a Kubernetes with these objects. All events about
// them have been sent.
func start(t *testing.T, change func(*kube.Config), objects ...runtime.Object) *world {
	t.Helper()
	w := &world{client: client(objects...)}
	w.run(t, change)
	synctest.Wait()
	return w
}

// run runs the world's cluster.
func (w *world) run(t *testing.T, change func(*kube.Config)) {
	t.Helper()
	config := kube.Config{
		Client: w.client, Namespace: namespace,
		Builder: podspec.Builder{Namespace: namespace, MaxMessageBytes: 1 << 20}, Templates: builtin(t), Send: w.record,
		ScanInterval: time.Minute, Clock: kubeclient.NewClock(slog.New(slog.DiscardHandler)), Telemetry: telemetry.Discard(),
		Owns: func(string) bool { return true },
	}
	if change != nil {
		change(&config)
	}
	cluster, err := kube.New(config)
	if err != nil {
		t.Fatal(err)
	}
	w.Cluster = cluster
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := cluster.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	w.stop = func() { cancel(); <-ended }
	t.Cleanup(w.stop)
}

func (w *world) record(e pool.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, e)
}

// events waits until nothing moves any more, and returns the events since the last
// call.
func (w *world) events() []pool.Event {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	sent := w.sent
	w.sent = nil
	return sent
}

// create asks for the pod in the first slot.
func (w *world) create() {
	until := time.Now().Add(time.Hour)
	w.Create(pool.Create{Function: fn, Slot: 1, Name: podName, ReclaimAfter: until}, workload)
}

// fails has requests answered with what answer returns, while that is an error.
func (w *world) fails(verb, resource string, answer func() error) {
	w.reacts(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		err := answer()
		return err != nil, nil, err
	})
}

// reacts has requests answered by reaction. Requests that are under way read the list of reactions.
func (w *world) reacts(verb, resource string, reaction clienttesting.ReactionFunc) {
	w.client.Lock()
	defer w.client.Unlock()
	w.client.PrependReactor(verb, resource, reaction)
}

// requests returns the changes that were asked for, as "create pods NAME".
func (w *world) requests() []string {
	var requests []string
	for _, a := range w.client.Actions() {
		var name string
		switch a := a.(type) {
		case clienttesting.CreateAction:
			name = a.GetObject().(metav1.Object).GetName()
		case clienttesting.DeleteAction:
			name = a.GetName()
		case clienttesting.PatchAction:
			name = a.GetName()
		default:
			continue
		}
		requests = append(requests, a.GetVerb()+" "+a.GetResource().Resource+" "+name)
	}
	slices.Sort(requests) // pods and Services are created in no order
	return requests
}

func (w *world) pod(t *testing.T) *corev1.Pod {
	t.Helper()
	pod, err := w.client.CoreV1().Pods(namespace).Get(t.Context(), podName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// serviceNames returns the Services that there are.
func (w *world) serviceNames(t *testing.T) string {
	t.Helper()
	services, err := w.client.CoreV1().Services(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, len(services.Items))
	for _, s := range services.Items {
		names = append(names, s.Name)
	}
	return strings.Join(names, " ")
}

// client returns a Kubernetes in memory. What the usual one lacks it has: UIDs, times
// of creation, versions, and preconditions of deletions.
func client(objects ...runtime.Object) *fake.Clientset {
	c := fake.NewClientset(objects...)
	var mu sync.Mutex
	version := 100
	stamp := func(meta metav1.Object) {
		mu.Lock()
		defer mu.Unlock()
		version++
		meta.SetResourceVersion(strconv.Itoa(version))
	}
	c.PrependReactor("create", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		meta := a.(clienttesting.CreateAction).GetObject().(metav1.Object)
		stamp(meta)
		meta.SetUID(types.UID("uid-" + meta.GetName()))
		meta.SetCreationTimestamp(metav1.Now())
		return false, nil, nil
	})
	c.PrependReactor("update", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		stamp(a.(clienttesting.UpdateAction).GetObject().(metav1.Object))
		return false, nil, nil
	})
	c.PrependReactor("patch", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		patch := a.(clienttesting.PatchAction)
		object, err := c.Tracker().Get(a.GetResource(), a.GetNamespace(), patch.GetName())
		if err != nil {
			return true, nil, err
		}
		var wanted metav1.PartialObjectMetadata
		if err := json.Unmarshal(patch.GetPatch(), &wanted); err != nil {
			return true, nil, err
		}
		if wanted.UID != "" && wanted.UID != object.(metav1.Object).GetUID() {
			return true, nil, apierrors.NewConflict(a.GetResource().GroupResource(), patch.GetName(), errors.New("uid mismatch"))
		}
		return false, nil, nil
	})
	c.PrependReactor("delete", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		del := a.(clienttesting.DeleteActionImpl)
		object, err := c.Tracker().Get(del.Resource, del.Namespace, del.Name)
		if err != nil || del.DeleteOptions.Preconditions == nil {
			return err != nil, nil, err
		}
		meta, wanted := object.(metav1.Object), del.DeleteOptions.Preconditions
		if (wanted.UID != nil && *wanted.UID != meta.GetUID()) ||
			(wanted.ResourceVersion != nil && *wanted.ResourceVersion != meta.GetResourceVersion()) {
			return true, nil, apierrors.NewConflict(del.Resource.GroupResource(), del.Name, errors.New("precondition failed"))
		}
		return false, nil, nil
	})
	return c
}

// defaults are those of all pods.
var defaults = podspec.Defaults{WrapperImage: "example.com/wrapper-server:v1"}

func template() podspec.Template { return podspec.Default(defaults) }

// builtin has the built-in template.
func builtin(t *testing.T) *kube.Templates {
	t.Helper()
	templates := kube.NewTemplates(kube.TemplatesConfig{Defaults: defaults, Telemetry: telemetry.Discard()})
	return templates
}

// existing returns a pod of ours and its Service, as they are once it runs.
func existing() (*corev1.Pod, *corev1.Service) {
	builder := podspec.Builder{Namespace: namespace, MaxMessageBytes: 1 << 20}
	request := podspec.Request{
		Workload: workload, Template: template(), Name: podName, Slot: 1,
		ReclaimAfter: time.Now().Add(time.Hour),
	}
	pod, service := builder.Pod(request), builder.Service(request)
	for _, meta := range []metav1.Object{pod, service} {
		meta.SetUID(types.UID("uid-" + meta.GetName()))
		meta.SetResourceVersion("7")
		meta.SetCreationTimestamp(metav1.NewTime(time.Now().Add(-time.Hour)))
	}
	runs(pod)
	return pod, service
}

// runs has a pod's container run.
func runs(pod *corev1.Pod) {
	pod.Spec.NodeName = "node"
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: "10.1.2.3",
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: podspec.ContainerName, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}},
	}
}

// update changes a pod as Kubernetes would.
func (w *world) update(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	if _, err := w.client.CoreV1().Pods(namespace).Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

var pods = schema.GroupResource{Resource: "pods"}

func podNameIn(slot int) string { return podname.PodName(reference, digest, slot, "") }
