// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package porchmain_test

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// fields changes each field that shapes pods: the pod of the next evaluation has it. The pods are made
// from Porch's template, which has an init container.
func (p place) fields(ctx context.Context, t *testing.T, image string) {
	function := func(pod corev1.Pod) corev1.Container { return pod.Spec.Containers[0] }
	launcher := func(pod corev1.Pod) corev1.Container { return pod.Spec.InitContainers[0] }
	const absent = `{"configMapRef": {"name": "absent", "optional": true}}`
	for _, field := range []struct {
		name, change string
		shows        func(pod corev1.Pod) bool
	}{
		{
			"serviceAccountName", `"serviceAccountName": "functions"`,
			func(pod corev1.Pod) bool { return pod.Spec.ServiceAccountName == "functions" },
		},
		{
			"securityContext", `"securityContext": {"runAsUser": 4711}`,
			func(pod corev1.Pod) bool {
				user := pod.Spec.SecurityContext.RunAsUser
				return user != nil && *user == 4711
			},
		},
		{
			"requests", `"container": {"resources": {"requests": {"cpu": "11m"}}}`,
			func(pod corev1.Pod) bool {
				return amount(function(pod).Resources.Requests, corev1.ResourceCPU) == "11m"
			},
		},
		{
			"limits", `"container": {"resources": {"limits": {"memory": "311Mi"}}}`,
			func(pod corev1.Pod) bool {
				return amount(function(pod).Resources.Limits, corev1.ResourceMemory) == "311Mi"
			},
		},
		{
			"env", `"container": {"env": [{"name": "LEVEL", "value": "third"}]}`,
			func(pod corev1.Pod) bool { return variable(function(pod), "LEVEL") == "third" },
		},
		{
			"envFrom", `"container": {"envFrom": [` + absent + `]}`,
			func(pod corev1.Pod) bool { return len(function(pod).EnvFrom) == 1 },
		},
		{
			"requests of the init container", `"initContainer": {"resources": {"requests": {"cpu": "12m"}}}`,
			func(pod corev1.Pod) bool {
				return amount(launcher(pod).Resources.Requests, corev1.ResourceCPU) == "12m"
			},
		},
		{
			"limits of the init container", `"initContainer": {"resources": {"limits": {"memory": "112Mi"}}}`,
			func(pod corev1.Pod) bool {
				return amount(launcher(pod).Resources.Limits, corev1.ResourceMemory) == "112Mi"
			},
		},
		{
			"env of the init container", `"initContainer": {"env": [{"name": "LEVEL", "value": "fourth"}]}`,
			func(pod corev1.Pod) bool { return variable(launcher(pod), "LEVEL") == "fourth" },
		},
		{
			"envFrom of the init container", `"initContainer": {"envFrom": [` + absent + `]}`,
			func(pod corev1.Pod) bool { return len(launcher(pod).EnvFrom) == 1 },
		},
	} {
		p.patch(ctx, t, "pods", `{"spec": {"podExecutor": {"templateOverrides": {`+field.change+`}}}}`)
		p.pod(ctx, t, image, field.name+" as changed", field.shows)
	}
	p.timeToLive(ctx, t, image)
	p.tags(ctx, t, image)
}

// amount returns a quantity as Kubernetes writes it.
func amount(of corev1.ResourceList, resource corev1.ResourceName) string {
	quantity := of[resource]
	return quantity.String()
}

// variable returns the value of a container's variable.
func variable(c corev1.Container, name string) string {
	i := slices.IndexFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == name })
	if i < 0 {
		return ""
	}
	return c.Env[i].Value
}

// expiry returns how long a pod lives without evaluations.
func expiry(pod corev1.Pod) time.Duration {
	reclaim, err := strconv.ParseInt(pod.Annotations["fn.kpt.dev/reclaim-after"], 10, 64)
	if err != nil {
		return 0
	}
	return time.Until(time.Unix(reclaim, 0))
}

// timeToLive changes how long pods live.
func (p place) timeToLive(ctx context.Context, t *testing.T, image string) {
	p.patch(ctx, t, "pods", `{"spec": {"podExecutor": {"timeToLive": "2h"}}}`)
	p.pod(ctx, t, image, "a later expiry", func(pod corev1.Pod) bool {
		left := expiry(pod)
		return left > 110*time.Minute && left <= 2*time.Hour
	})
}

// tags has the FunctionConfig be for other tags, and for this one again.
func (p place) tags(ctx context.Context, t *testing.T, image string) {
	level := func(want string) func(pod corev1.Pod) bool {
		return func(pod corev1.Pod) bool { return variable(pod.Spec.Containers[0], "LEVEL") == want }
	}
	for _, change := range []struct{ tag, level string }{{"v9.9.9", ""}, {"v0.4.5", "third"}} {
		p.patch(ctx, t, "pods", `{"spec": {"podExecutor": {"tags": ["`+change.tag+`"]}}}`)
		p.pod(ctx, t, image, "the variables for tag "+change.tag, level(change.level))
	}
}

// numbers changes the fields that decide how many pods there are.
func (p place) numbers(ctx context.Context, t *testing.T, registry string) {
	p.create(ctx, t, "sleep", `{"image": "sleep", "prefixes": ["`+registry+`/test"],
		"podExecutor": {"maxParallelExecutions": 2, "preferredMaxQueueLength": 10}}`)
	p.awaitApplied(ctx, t, "sleep", 1)
	conn := p.connect(ctx, t)
	for _, step := range []struct {
		reason, change string
		pods           int
	}{
		{"one pod takes as many evaluations as may wait for it", `{}`, 1},
		{"of more there are further pods, up to the bound", `{"preferredMaxQueueLength": 1}`, 2},
		{"the bound is higher", `{"maxParallelExecutions": 3}`, 3},
	} {
		p.patch(ctx, t, "sleep", `{"spec": {"podExecutor": `+step.change+`}}`)
		var evaluations errgroup.Group
		for range 4 {
			evaluations.Go(func() error {
				return suite.Sleep(ctx, conn, registry+"/test/sleep:v1", 3*time.Second, grpc.WaitForReady(true))
			})
		}
		if err := evaluations.Wait(); err != nil {
			t.Fatal(err)
		}
		if n := len(p.pods(ctx, t, "/test/sleep")); n != step.pods {
			t.Errorf("after %s there are %d pods, want %d: %s", step.change, n, step.pods, step.reason)
		}
	}
}
