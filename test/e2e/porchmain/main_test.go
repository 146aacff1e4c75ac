// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package porchmain_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// Namespaces of the function runner and of function pods.
const (
	system    = "porch-system-main"
	functions = "porch-fn-system-main"
)

var (
	s *suite.Suite

	configs = schema.GroupVersionResource{
		Group: "config.porch.kpt.dev", Version: "v1alpha1", Resource: "functionconfigs",
	}
	serviceTemplates = configs.GroupVersion().WithResource("servicetemplates")
	podTemplates     = schema.GroupVersionResource{Version: "v1", Resource: "podtemplates"}
	definitions      = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
)

func TestMain(m *testing.M) {
	os.Exit(suite.Run(m, func(connected *suite.Suite) { s = connected }))
}

// objects returns the objects of a file, with the test bed's images and registry.
func objects(t *testing.T, name string) []*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text := s.OwnImages(t, suite.Current, strings.ReplaceAll(string(content), "REGISTRY", s.Registry(t, "open").Host))
	var all []*unstructured.Unstructured
	for document := range strings.SplitSeq(text, "\n---\n") {
		all = append(all, suite.Decode(t, document))
	}
	return all
}

// install installs the definitions and the function runner, and removes them when the test ends.
func install(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute) // the test's own has ended
		defer cancel()
		s.RemoveNamespace(ctx, t, system)
		s.RemoveNamespace(ctx, t, functions)
		for _, definition := range objects(t, "crds") {
			if err := s.Dynamic().Resource(definitions).Delete(ctx, definition.GetName(), metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}
	})
	ctx := suite.Context(t)
	s.Apply(ctx, t, false, objects(t, "crds")...)
	suite.Until(ctx, t, "FunctionConfigs are served", func() (bool, string) {
		_, err := inNamespace().List(ctx, metav1.ListOptions{Limit: 1})
		return err == nil, "not served"
	})
	s.Install(ctx, t, objects(t, "system")...)
}

// inNamespace is the client of FunctionConfigs.
func inNamespace() dynamic.ResourceInterface {
	return s.Dynamic().Resource(configs).Namespace(functions)
}

// create creates a FunctionConfig with a spec in JSON.
func create(ctx context.Context, t *testing.T, name, spec string, finalizers ...string) {
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
	if _, err := inNamespace().Create(ctx, u, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// patch changes a FunctionConfig as kubectl does, and waits until its status has the change.
func patch(ctx context.Context, t *testing.T, name, change string) time.Duration {
	t.Helper()
	begin := time.Now()
	u, err := inNamespace().Patch(ctx, name, types.MergePatchType, []byte(change), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	awaitApplied(ctx, t, name, u.GetGeneration())
	return time.Since(begin)
}

// awaitApplied waits until the status of a FunctionConfig has a generation.
func awaitApplied(ctx context.Context, t *testing.T, name string, generation int64) {
	t.Helper()
	suite.Until(ctx, t, name+" is applied", func() (bool, string) {
		u, err := inNamespace().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		status, _, _ := unstructured.NestedMap(u.Object, "status")
		observed, _, _ := unstructured.NestedInt64(u.Object, "status", "functionRunnerObservedGeneration")
		content, _ := json.Marshal(status)
		return observed == generation, string(content)
	})
}

// evaluate evaluates set-namespace by a name.
func evaluate(ctx context.Context, t *testing.T, image string) {
	t.Helper()
	service, err := s.Client.CoreV1().Services(system).Get(ctx, "function-runner", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	conn := suite.Connect(t, service.Spec.ClusterIP+":9445")
	if err := suite.SetNamespace(ctx, conn, image, grpc.WaitForReady(true)); err != nil {
		t.Fatal(err)
	}
}

// newest returns the newest function pod that is not being deleted.
func newest(ctx context.Context, t *testing.T) *corev1.Pod {
	t.Helper()
	pods, err := s.Client.CoreV1().Pods(functions).List(ctx, metav1.ListOptions{LabelSelector: "fn.kpt.dev/image"})
	if err != nil {
		t.Fatal(err)
	}
	var last *corev1.Pod
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.DeletionTimestamp == nil && (last == nil || pod.CreationTimestamp.After(last.CreationTimestamp.Time)) {
			last = pod
		}
	}
	if last == nil {
		t.Fatal("there is no function pod")
	}
	return last
}
