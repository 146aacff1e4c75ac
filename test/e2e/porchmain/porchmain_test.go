// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package porchmain_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// TestPorchMain runs function-runner, and our services, with the objects of Porch's main branch: at the same time, each
// in its own namespaces.
func TestPorchMain(t *testing.T) {
	define(t)
	t.Run("function-runner", inPlace)
	t.Run("microservices", services)
}

// inPlace has the Deployment and the Role of Porch's main branch.
func inPlace(t *testing.T) {
	t.Parallel()
	p := place{"porch-system-main", "porch-fn-system-main", "porch-fn-runner"}
	began := p.install(t, objects(t, "system"))
	registry := s.Registry(t, "open").Host
	inPod := registry + "/krm-functions-catalog/set-namespace:v0.4.5"

	t.Run("binary", func(t *testing.T) { p.binary(suite.Context(t), t, "/home/nonroot/functions/set-namespace") })
	t.Run("pods", func(t *testing.T) { p.shapes(suite.Context(t), t, registry, inPod) })
	t.Run("templates", func(t *testing.T) { p.templates(suite.Context(t), t, inPod) })
	t.Run("fields", func(t *testing.T) { p.fields(suite.Context(t), t, inPod) })
	t.Run("numbers", func(t *testing.T) { p.numbers(suite.Context(t), t, registry) })
	t.Run("finalizer", func(t *testing.T) { p.finalizer(suite.Context(t), t) })
	t.Run("many", func(t *testing.T) { p.many(suite.Context(t), t) })
	p.refusedOnlyLeases(t, began)
}

// binary has a FunctionConfig run an image as a local binary whose registry does not exist, and changes
// each of its fields. The binary also has an absolute path.
func (p place) binary(ctx context.Context, t *testing.T, path string) {
	p.create(ctx, t, "binary", `{"image": "set-namespace", "prefixes": ["registry.invalid/fns"],
		"binaryExecutor": {"tags": ["v9.9.9"], "path": "set-namespace"}}`)
	p.awaitApplied(ctx, t, "binary", 1)
	p.awaitBinary(ctx, t, "registry.invalid/fns/set-namespace:v9.9.9")

	p.patch(ctx, t, "binary", `{"spec": {"binaryExecutor": {"tags": ["v9.9.8"]}}}`)
	p.awaitBinary(ctx, t, "registry.invalid/fns/set-namespace:v9.9.8")
	p.patch(ctx, t, "binary", `{"spec": {"prefixes": ["registry.invalid/moved"]}}`)
	p.awaitBinary(ctx, t, "registry.invalid/moved/set-namespace:v9.9.8")

	p.change(ctx, t, "binary", `{"spec": {"binaryExecutor": {"path": "/nowhere/set-namespace"}}}`)
	p.awaitError(ctx, t, "binary", "is outside of the function runner's directory of functions")
	if observed, text := p.status(ctx, t, "binary"); observed != 3 {
		t.Errorf("with an error (%s) the status has generation %d, want that of the last valid change", text, observed)
	}
	p.patch(ctx, t, "binary", `{"spec": {"binaryExecutor": {"path": "`+path+`"}}}`)
	p.awaitBinary(ctx, t, "registry.invalid/moved/set-namespace:v9.9.8")
}

// shapes has a FunctionConfig shape pods.
func (p place) shapes(ctx context.Context, t *testing.T, registry, image string) {
	p.create(ctx, t, "pods", `{"image": "set-namespace", "prefixes": ["`+registry+`/krm-functions-catalog"],
		"podExecutor": {"tags": ["v0.4.5"], "timeToLive": "10m", "maxParallelExecutions": 1, "templateOverrides": {
			"serviceAccountName": "functions",
			"container": {"resources": {"requests": {"cpu": "10m"}, "limits": {"memory": "300Mi"}},
				"env": [{"name": "LEVEL", "value": "first"}]}}}}`)
	p.awaitApplied(ctx, t, "pods", 1)
	pod := p.pod(ctx, t, image, "what the FunctionConfig says", func(pod corev1.Pod) bool {
		function := pod.Spec.Containers[0]
		return pod.Spec.ServiceAccountName == "functions" && function.Resources.Limits.Memory().String() == "300Mi" &&
			variable(function, "LEVEL") == "first"
	})
	if left := expiry(pod); left <= 0 || left > 11*time.Minute {
		t.Errorf("the pod expires in %v, want about ten minutes", left)
	}
}

// templates has Porch's templates shape pods and Services: metrics of pods are served once. Then the
// FunctionConfig overrides nothing any more.
func (p place) templates(ctx context.Context, t *testing.T, image string) {
	p.patch(ctx, t, "pods", `{"spec": {"podExecutor": {"templateOverrides": null}}}`)
	for i, u := range objects(t, "templates") {
		kind := []schema.GroupVersionResource{podTemplates, serviceTemplates}[i]
		if _, err := s.Dynamic().Resource(kind).Namespace(p.functions).Create(ctx, u, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	// The templates are two objects: a pod may be made when only one of them is known.
	base := func(pod corev1.Pod) bool {
		service, err := s.Client.CoreV1().Services(p.functions).Get(ctx, pod.Labels["fn.kpt.dev/image"], metav1.GetOptions{})
		return err == nil && pod.Labels["template"] == "base" && service.Labels["template"] == "base" &&
			len(service.Spec.Ports) == 2
	}
	pod := p.pod(ctx, t, image, "what the templates say", base)
	// Porch's template has no readiness probe: the kubelet calls the pod ready before it serves.
	suite.Until(ctx, t, "the pod serves its metrics", func() (bool, string) {
		p.evaluate(ctx, t, image)
		page, err := suite.Metrics(ctx, pod.Status.PodIP)
		return err == nil && strings.Contains(page, "rpc_server_") && strings.Contains(page, "go_"),
			fmt.Sprintf("%v\n%s", err, page)
	})
}

// finalizer deletes an object that has the finalizer of Porch's own function runner.
func (p place) finalizer(ctx context.Context, t *testing.T) {
	p.create(ctx, t, "deleted", `{"image": "deleted", "podExecutor": {}}`,
		"config.porch.kpt.dev/functionconfig-function-runner")
	p.awaitApplied(ctx, t, "deleted", 1)
	begin := time.Now()
	if err := p.configs().Delete(ctx, "deleted", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	suite.Until(ctx, t, "the object is gone", func() (bool, string) {
		_, err := p.configs().Get(ctx, "deleted", metav1.GetOptions{})
		return err != nil, "still there"
	})
	t.Logf("an object with the finalizer was deleted within %v", time.Since(begin).Round(time.Millisecond))
}

// many has a thousand objects at the start, and changes one of them.
func (p place) many(ctx context.Context, t *testing.T) {
	const objects = 1000
	scale := func(replicas int) {
		t.Helper()
		change := fmt.Sprintf(`{"spec": {"replicas": %d}}`, replicas)
		if _, err := s.Client.AppsV1().Deployments(p.system).Patch(ctx, "function-runner",
			"application/merge-patch+json", []byte(change), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	scale(0)
	s.AwaitRollout(ctx, t, p.system, "function-runner")
	var creating errgroup.Group
	creating.SetLimit(20)
	for i := range objects {
		creating.Go(func() error {
			p.create(ctx, t, fmt.Sprintf("many-%d", i), fmt.Sprintf(`{"image": "many-%d", "podExecutor": {"tags": ["v1"]}}`, i))
			return nil
		})
	}
	_ = creating.Wait() // it returns no errors
	scale(2)
	suite.Until(ctx, t, "all objects are applied", func() (bool, string) {
		list, err := p.configs().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return false, err.Error()
		}
		applied := 0
		for _, u := range list.Items {
			n, _, _ := unstructured.NestedInt64(u.Object, "status", "functionRunnerObservedGeneration")
			if n == u.GetGeneration() {
				applied++
			}
		}
		return applied >= objects, fmt.Sprintf("%d applied", applied)
	})
	t.Logf("%d FunctionConfigs had their status %v after the first replica was started",
		objects, time.Since(p.firstStart(ctx, t)).Round(time.Millisecond))
	s.AwaitRollout(ctx, t, p.system, "function-runner")
	took := p.patch(ctx, t, "many-500", `{"spec": {"podExecutor": {"timeToLive": "1h"}}}`)
	t.Logf("one change among them had its status after %v", took.Round(time.Millisecond))
}

// firstStart returns when the first replica of function-runner was started.
func (p place) firstStart(ctx context.Context, t *testing.T) time.Time {
	t.Helper()
	pods, err := s.Client.CoreV1().Pods(p.system).List(ctx, metav1.ListOptions{LabelSelector: "app=function-runner"})
	if err != nil {
		t.Fatal(err)
	}
	first := time.Now()
	for _, pod := range pods.Items {
		for _, c := range pod.Status.ContainerStatuses {
			if running := c.State.Running; running != nil && running.StartedAt.Time.Before(first) {
				first = running.StartedAt.Time
			}
		}
	}
	return first
}
