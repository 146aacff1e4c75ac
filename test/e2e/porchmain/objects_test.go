// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package porchmain_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// configs is the client of FunctionConfigs.
func (p place) configs() dynamic.ResourceInterface {
	return s.Dynamic().Resource(configs).Namespace(p.functions)
}

// create creates a FunctionConfig with a spec in JSON.
func (p place) create(ctx context.Context, t *testing.T, name, spec string, finalizers ...string) {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{}}
	var fields map[string]any
	if err := json.Unmarshal([]byte(spec), &fields); err != nil {
		t.Fatal(err)
	}
	u.Object["spec"] = fields
	u.SetAPIVersion("config.porch.kpt.dev/v1alpha1")
	u.SetKind("FunctionConfig")
	u.SetName(name)
	u.SetFinalizers(finalizers)
	if _, err := p.configs().Create(ctx, u, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// change changes a FunctionConfig as kubectl patch does, and returns its generation.
func (p place) change(ctx context.Context, t *testing.T, name, change string) int64 {
	t.Helper()
	u, err := p.configs().Patch(ctx, name, types.MergePatchType, []byte(change), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return u.GetGeneration()
}

// patch changes a FunctionConfig, and returns how long its status took to have the change.
func (p place) patch(ctx context.Context, t *testing.T, name, change string) time.Duration {
	t.Helper()
	begin := time.Now()
	p.awaitApplied(ctx, t, name, p.change(ctx, t, name, change))
	return time.Since(begin)
}

// awaitApplied waits until the status of a FunctionConfig has a generation, and no error.
func (p place) awaitApplied(ctx context.Context, t *testing.T, name string, generation int64) {
	t.Helper()
	suite.Until(ctx, t, name+" is applied", func() (bool, string) {
		observed, text := p.status(ctx, t, name)
		return observed == generation && text == "", text
	})
}

// awaitError waits until the status of a FunctionConfig has an error.
func (p place) awaitError(ctx context.Context, t *testing.T, name, want string) {
	t.Helper()
	suite.Until(ctx, t, "the status of "+name+" has an error", func() (bool, string) {
		_, text := p.status(ctx, t, name)
		return strings.Contains(text, want), text
	})
}

// status returns the status of a FunctionConfig.
func (p place) status(ctx context.Context, t *testing.T, name string) (observed int64, text string) {
	t.Helper()
	u, err := p.configs().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	observed, _, _ = unstructured.NestedInt64(u.Object, "status", "functionRunnerObservedGeneration")
	text, _, _ = unstructured.NestedString(u.Object, "status", "error")
	return observed, text
}

// connect returns a connection to the function runner, as Porch has.
func (p place) connect(ctx context.Context, t *testing.T) *grpc.ClientConn {
	t.Helper()
	return suite.Connect(t, s.ServiceAddress(ctx, t, p.system, "function-runner", "9445"))
}

// evaluate evaluates set-namespace by a name.
func (p place) evaluate(ctx context.Context, t *testing.T, image string) {
	t.Helper()
	if err := suite.SetNamespace(ctx, p.connect(ctx, t), image, grpc.WaitForReady(true)); err != nil {
		t.Fatal(err)
	}
}

// awaitBinary evaluates set-namespace by a name that only a binary has, until the replicas that did not write the
// status of the FunctionConfig know it, too.
func (p place) awaitBinary(ctx context.Context, t *testing.T, image string) {
	t.Helper()
	conn := p.connect(ctx, t)
	suite.Until(ctx, t, "a binary evaluates "+image, func() (bool, string) {
		err := suite.SetNamespace(ctx, conn, image, grpc.WaitForReady(true))
		return err == nil, fmt.Sprint(err)
	})
}

// pods returns the function pods of a repository that are not being deleted, the newest first.
func (p place) pods(ctx context.Context, t *testing.T, repository string) []corev1.Pod {
	t.Helper()
	list, err := s.Client.CoreV1().Pods(p.functions).List(ctx, metav1.ListOptions{LabelSelector: "fn.kpt.dev/image"})
	if err != nil {
		t.Fatal(err)
	}
	found := slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool {
		return pod.DeletionTimestamp != nil || !strings.Contains(pod.Spec.Containers[0].Image, repository)
	})
	slices.SortFunc(found, func(a, b corev1.Pod) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	return found
}

// pod evaluates set-namespace until a ready pod has what a change asks for, and returns that pod. Pods from before the
// change serve until another one is ready.
func (p place) pod(ctx context.Context, t *testing.T, image, what string, has func(pod corev1.Pod) bool) corev1.Pod {
	t.Helper()
	var found corev1.Pod
	suite.Until(ctx, t, "a ready pod has "+what, func() (bool, string) {
		p.evaluate(ctx, t, image)
		all := p.pods(ctx, t, "/set-namespace")
		i := slices.IndexFunc(all, func(pod corev1.Pod) bool { return suite.Ready(&pod) && has(pod) })
		if i < 0 {
			return false, fmt.Sprintf("%+v", all)
		}
		found = all[i]
		return true, ""
	})
	return found
}
