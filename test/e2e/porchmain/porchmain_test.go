// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package porchmain_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// TestPorchMain runs function-runner with the Deployment, the Role and the objects of Porch's main
// branch.
func TestPorchMain(t *testing.T) {
	install(t)
	ctx := suite.Context(t)
	registry := s.Registry(t, "open").Host
	inPod := registry + "/krm-functions-catalog/set-namespace:v0.4.5"

	t.Run("binary", func(t *testing.T) { binary(ctx, t) })
	t.Run("pods", func(t *testing.T) { pods(ctx, t, registry, inPod) })
	t.Run("templates", func(t *testing.T) { templates(ctx, t, inPod) })
	t.Run("finalizer", func(t *testing.T) { finalizer(ctx, t) })
	t.Run("many", func(t *testing.T) { many(ctx, t) })
	for _, r := range s.Requests(t, system, "porch-fn-runner", time.Time{}) {
		if r.Response.Code == http.StatusForbidden {
			t.Errorf("the Role of Porch's main branch does not suffice: %s %s", r.Verb, r.URI)
		}
	}
}

// binary has a FunctionConfig run an image as a local binary whose registry does not exist.
func binary(ctx context.Context, t *testing.T) {
	create(ctx, t, "binary", `{"image": "set-namespace", "prefixes": ["registry.invalid/fns"],
		"binaryExecutor": {"tags": ["v9.9.9"], "path": "set-namespace"}}`)
	awaitApplied(ctx, t, "binary", 1)
	evaluate(ctx, t, "registry.invalid/fns/set-namespace:v9.9.9")

	create(ctx, t, "missing", `{"image": "set-namespace", "prefixes": ["registry.invalid/others"],
		"binaryExecutor": {"tags": ["v9.9.9"], "path": "/nowhere/set-namespace"}}`)
	suite.Until(ctx, t, "the status has the error", func() (bool, string) {
		u, err := inNamespace().Get(ctx, "missing", metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		text, _, _ := unstructured.NestedString(u.Object, "status", "error")
		return strings.Contains(text, "/nowhere/set-namespace"), text
	})
}

// pods has a FunctionConfig shape pods, and changes it.
func pods(ctx context.Context, t *testing.T, registry, image string) {
	create(ctx, t, "pods", `{"image": "set-namespace", "prefixes": ["`+registry+`/krm-functions-catalog"],
		"podExecutor": {"tags": ["v0.4.5"], "timeToLive": "10m", "maxParallelExecutions": 1, "templateOverrides": {
			"serviceAccountName": "functions",
			"container": {"resources": {"requests": {"cpu": "10m"}, "limits": {"memory": "300Mi"}},
				"env": [{"name": "LEVEL", "value": "first"}]}}}}`)
	awaitApplied(ctx, t, "pods", 1)
	evaluate(ctx, t, image)
	pod := newest(ctx, t)
	function := pod.Spec.Containers[0]
	if pod.Spec.ServiceAccountName != "functions" || function.Resources.Limits.Memory().String() != "300Mi" ||
		function.Resources.Requests.Cpu().String() != "10m" || function.Env[0].Value != "first" {
		t.Errorf("the pod does not have what the FunctionConfig says: %+v", pod.Spec)
	}
	reclaim, err := strconv.ParseInt(pod.Annotations["fn.kpt.dev/reclaim-after"], 10, 64)
	if left := time.Until(time.Unix(reclaim, 0)); err != nil || left > 11*time.Minute {
		t.Errorf("the pod expires in %v, want about ten minutes (%v)", left, err)
	}
	patch(ctx, t, "pods", `{"spec": {"podExecutor": {"templateOverrides": {"securityContext": {"runAsUser": 12345},
		"container": {"env": [{"name": "LEVEL", "value": "second"}], "resources": {"limits": {"memory": "400Mi"}}}}}}}`)
	evaluate(ctx, t, image)
	pod = newest(ctx, t)
	function = pod.Spec.Containers[0]
	if function.Env[0].Value != "second" || function.Resources.Limits.Memory().String() != "400Mi" ||
		pod.Spec.SecurityContext.RunAsUser == nil || *pod.Spec.SecurityContext.RunAsUser != 12345 {
		t.Errorf("a change does not show in the next pod: %+v", pod.Spec)
	}
}

// templates has Porch's templates shape pods and Services: metrics of pods are served once.
func templates(ctx context.Context, t *testing.T, image string) {
	for i, u := range objects(t, "templates") {
		kind := []schema.GroupVersionResource{podTemplates, serviceTemplates}[i]
		if _, err := s.Dynamic().Resource(kind).Namespace(functions).Create(ctx, u, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	suite.Until(ctx, t, "a pod is made from the templates", func() (bool, string) {
		evaluate(ctx, t, image)
		pod := newest(ctx, t)
		return pod.Labels["template"] == "base", fmt.Sprint(pod.Labels)
	})
	pod := newest(ctx, t)
	service, err := s.Client.CoreV1().Services(functions).Get(ctx, pod.Labels["fn.kpt.dev/image"], metav1.GetOptions{})
	if err != nil || service.Labels["template"] != "base" || len(service.Spec.Ports) != 2 {
		t.Errorf("the Service is %+v, %v", service, err)
	}
	patch(ctx, t, "pods", `{"spec": {"podExecutor": {"templateOverrides": null}}}`) // the template's variables again
	evaluate(ctx, t, image)
	page, err := suite.Metrics(ctx, newest(ctx, t).Status.PodIP)
	if err != nil || !strings.Contains(page, "rpc_server_") || !strings.Contains(page, "go_") {
		t.Errorf("metrics of the pod: %v\n%s", err, page)
	}
}

// finalizer deletes an object that has the finalizer of Porch's own function runner.
func finalizer(ctx context.Context, t *testing.T) {
	create(ctx, t, "deleted", `{"image": "deleted", "podExecutor": {}}`,
		"config.porch.kpt.dev/functionconfig-function-runner")
	awaitApplied(ctx, t, "deleted", 1)
	begin := time.Now()
	if err := inNamespace().Delete(ctx, "deleted", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	suite.Until(ctx, t, "the object is gone", func() (bool, string) {
		_, err := inNamespace().Get(ctx, "deleted", metav1.GetOptions{})
		return err != nil, "still there"
	})
	t.Logf("an object with the finalizer was deleted within %v", time.Since(begin).Round(time.Millisecond))
}

// many has a thousand objects at the start, and changes one of them.
func many(ctx context.Context, t *testing.T) {
	const objects = 1000
	scale := func(replicas int) {
		t.Helper()
		change := fmt.Sprintf(`{"spec": {"replicas": %d}}`, replicas)
		if _, err := s.Client.AppsV1().Deployments(system).Patch(ctx, "function-runner",
			"application/merge-patch+json", []byte(change), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	scale(0)
	s.AwaitRollout(ctx, t, system, "function-runner")
	var creating errgroup.Group
	creating.SetLimit(20)
	for i := range objects {
		creating.Go(func() error {
			create(ctx, t, fmt.Sprintf("many-%d", i), fmt.Sprintf(`{"image": "many-%d", "podExecutor": {"tags": ["v1"]}}`, i))
			return nil
		})
	}
	_ = creating.Wait() // it returns no errors
	scale(2)
	suite.Until(ctx, t, "all objects are applied", func() (bool, string) {
		list, err := inNamespace().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
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
		objects, time.Since(firstStart(ctx, t)).Round(time.Millisecond))
	s.AwaitRollout(ctx, t, system, "function-runner")
	took := patch(ctx, t, "many-500", `{"spec": {"podExecutor": {"timeToLive": "1h"}}}`)
	t.Logf("one change among them had its status after %v", took.Round(time.Millisecond))
}

// firstStart returns when the first replica of function-runner was started.
func firstStart(ctx context.Context, t *testing.T) time.Time {
	t.Helper()
	pods, err := s.Client.CoreV1().Pods(system).List(ctx, metav1.ListOptions{LabelSelector: "app=function-runner"})
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
