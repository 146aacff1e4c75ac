// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package pods_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// The ConfigMap of the pod cache configuration, and its key.
const (
	cacheConfigName = "pod-cache-config"
	cacheConfigFile = "pod-cache-config.yaml"
)

// mountCacheConfig mounts the pod cache configuration, if there is one, into a program, at the path
// of the manifests.
func mountCacheConfig(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: cacheConfigName, VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: cacheConfigName},
			Optional:             new(true),
		},
	}})
	container := &pod.Spec.Containers[0]
	container.VolumeMounts = append(container.VolumeMounts,
		corev1.VolumeMount{Name: cacheConfigName, MountPath: "/pod-cache-config"})
	return pod
}

// cacheConfig creates the pod cache configuration.
func (sys *system) cacheConfig(t testing.TB, content string) *corev1.ConfigMap {
	t.Helper()
	config := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: cacheConfigName},
		Data:       map[string]string{cacheConfigFile: content},
	}
	created, err := s.Client.CoreV1().ConfigMaps(sys.services).Create(suite.Context(t), config, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// TestPodCacheConfig starts pods of functions before their first call: those named in the older
// format at the start, and those named in the newer one when it replaces the older. The settings of
// a function hold for its pods.
func TestPodCacheConfig(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			older, newer := echo(t), s.Registry(t, "open").Host+"/test/sleep:v1"
			var config *corev1.ConfigMap
			sys := m.deploy(t, nil, func(sys *system) { config = sys.cacheConfig(t, older+": 10m\n") })
			lives(t, sys.awaitWarm(t, older), 10*time.Minute)

			config.Data[cacheConfigFile] = "- name: " + newer + "\n  timeToLive: 20m\n  maxConcurrency: 1\n" +
				"  resources: {requests: {cpu: 2m}, limits: {memory: 200Mi}}\n"
			if _, err := s.Client.CoreV1().ConfigMaps(sys.services).Update(suite.Context(t), config,
				metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			pod := sys.awaitWarm(t, newer)
			lives(t, pod, 20*time.Minute)
			resources := pod.Spec.Containers[0].Resources
			if cpu, memory := resources.Requests.Cpu().String(), resources.Limits.Memory().String(); cpu != "2m" ||
				memory != "200Mi" {
				t.Errorf("the pod requests %s of a processor, and is limited to %s of memory, want 2m and 200Mi", cpu, memory)
			}
			sys.servesInOrder(t, newer)
		})
	}
}

// awaitWarm waits until an image without calls has a ready pod.
func (sys *system) awaitWarm(t *testing.T, image string) (pod corev1.Pod) {
	t.Helper()
	ctx, conn := suite.Context(t), sys.connect(t)
	touched := time.Time{}
	suite.Until(ctx, t, "there is a pod of "+image, func() (bool, string) {
		if time.Since(touched) > 500*time.Millisecond {
			s.Touch(ctx, t, sys.services, sys.manager)
			touched = time.Now()
		}
		is := pool(t, conn, image)
		return len(is.GetPods()) == 1 && is.GetPods()[0].GetState() == podmanagerv1.Pod_STATE_READY, is.String()
	})
	is := pool(t, conn, image)
	if is.GetLeasesTotal() != 0 {
		t.Errorf("the pool has been used: %v", is)
	}
	pods := sys.functionPods(t)
	i := slices.IndexFunc(pods, func(pod corev1.Pod) bool { return pod.Name == is.GetPods()[0].GetName() })
	if i < 0 {
		t.Fatalf("the pods are %v, without %s", names(pods), is.GetPods()[0].GetName())
	}
	return pods[i]
}

// lives checks the time to live of an unused pod. Other settings differ by minutes.
func lives(t *testing.T, pod corev1.Pod, want time.Duration) {
	t.Helper()
	seconds, err := strconv.ParseInt(pod.Annotations["fn.kpt.dev/reclaim-after"], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if ttl := time.Unix(seconds, 0).Sub(pod.CreationTimestamp.Time); ttl.Round(5*time.Minute) != want {
		t.Errorf("pod %s lives for %v, want %v", pod.Name, ttl, want)
	}
}

// servesInOrder sends requests one after another to a function with a concurrency of one. The first caller holds the
// lease until all other callers are waiting, and leaves then.
func (sys *system) servesInOrder(t *testing.T, image string) {
	t.Helper()
	const callers = 6
	ctx, conn := suite.Context(t), sys.connect(t)
	// This evaluation connects to the pod. A gateway on a busy machine may try that again, and request a new lease.
	if err := suite.Sleep(ctx, conn, image, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	suite.Until(ctx, t, "the lease has ended", func() (bool, string) {
		is := pool(t, conn, image)
		return is.GetActive() == 0, is.String()
	})
	var running sync.WaitGroup
	first, leave := context.WithCancel(ctx)
	defer leave()
	running.Go(func() {
		if suite.Sleep(first, conn, image, time.Hour) == nil {
			t.Error("the first caller was served before it left")
		}
	})
	for number := range callers {
		if number > 0 {
			running.Go(func() {
				if err := suite.Sleep(ctx, conn, image, time.Millisecond); err != nil {
					t.Errorf("caller %d: %v", number, err)
				}
			})
		}
		suite.Until(ctx, t, "the caller has come", func() (bool, string) {
			is := pool(t, conn, image)
			return is.GetActive() == 1 && int(is.GetWaiting()) == number, is.String()
		})
	}
	leave()
	running.Wait()
	// The order in which answers reach the callers depends on how busy the machine is. The gateway's times do not: it
	// begins an evaluation after it has finished the evaluation that held the lease before.
	list, err := gatewayv1.NewStatusServiceClient(conn).ListEvaluations(ctx, &gatewayv1.ListEvaluationsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	came := slices.DeleteFunc(list.GetEvaluations(), func(e *gatewayv1.Evaluation) bool { return e.GetImage() != image })
	slices.SortFunc(came, func(a, b *gatewayv1.Evaluation) int {
		return a.GetStartTime().AsTime().Compare(b.GetStartTime().AsTime())
	})
	if len(came) != callers+1 || !slices.IsSortedFunc(came, func(a, b *gatewayv1.Evaluation) int {
		return runBegan(t, a).Compare(runBegan(t, b))
	}) {
		t.Errorf("callers were served in another order than that in which they came: %v", came)
	}
}

// runBegan returns the time when the function of an evaluation was started.
func runBegan(t *testing.T, e *gatewayv1.Evaluation) time.Time {
	t.Helper()
	i := slices.IndexFunc(e.GetPhases(), func(p *gatewayv1.EvaluationPhase) bool { return p.GetName() == "run" })
	if i < 0 {
		t.Fatalf("an evaluation did not run: %v", e)
	}
	return e.GetStartTime().AsTime().Add(e.GetPhases()[i].GetOffset().AsDuration())
}
