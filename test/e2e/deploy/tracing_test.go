// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krm-function-runner/function-runner/libs/testing/gobuild"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// collector is the address to which the component for tracing sends traces.
const collector = "http://otel-collector.observability:4318"

// leased are the spans of the phases of a cold start that callers always see. (A container that was created and does
// not run yet, and one that runs and is not connected to, are seen if they last: TestSpans of podeval has the spans
// fn.lease.start and fn.lease.connect.)
var leased = []string{"fn.lease.queue", "fn.lease.create", "fn.lease.schedule", "fn.lease.pull"}

// phases are all spans of a cold start, besides those of RPCs.
var phases = append([]string{"fn.evaluate", "fn.resolve", "fn.registry.manifest", "fn.lease", "fn.exec"}, leased...)

// The trace of a caller that waits for a pod of another one, and its span.
const waitingTrace, waitingSpan = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"

// TestTracesAreWhole has fnctl render a package in a pod for which there is no capacity at first, and then no node.
// Another caller waits for the same pod. Both send a trace of their own, of which the spans of every service and
// phase are parts, each with its parent.
func TestTracesAreWhole(t *testing.T) {
	t.Parallel() // with other tests in their own namespaces
	ctx, at := suite.Context(t), aside("tracing")
	spans := at.installTraced(t)
	conn, image, fnctl := at.caller(t), inPod(t), gobuild.Program(t, filepath.Join(root, "fnctl"), ".")
	ended := make(chan error)
	go func() {
		ended <- suite.Sleep(ctx, conn, s.Registry(t, "open").Host+"/test/sleep:v1", time.Second, grpc.WaitForReady(true))
	}()
	sleeping := at.await(t, "sleep") // the only pod that there may be
	rendered := at.render(ctx, t, fnctl, image)
	at.waiting(ctx, t, fnctl, "queue", 1)
	at.release(t, sleeping)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	pod := at.await(t, "set-namespace")
	go func() {
		own := metadata.AppendToOutgoingContext(ctx, "traceparent", "00-"+waitingTrace+"-"+waitingSpan+"-01")
		ended <- suite.SetNamespace(own, conn, image)
	}()
	at.waiting(ctx, t, fnctl, "schedule", 2)
	at.release(t, pod)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	id := <-rendered
	suite.Until(ctx, t, "two callers have whole traces", func() (bool, string) {
		log := spans()
		problem := incomplete(whole(log), id)
		return problem == "", fmt.Sprintf("%s; the traces are %s and %s, and there are\n%s", problem, id, waitingTrace, log)
	})
}

// incomplete returns what the trace of the caller for which a pod was started lacks, or that of the waiting one.
func incomplete(traces map[string]trace, id string) string {
	services := []string{"gateway", "image-resolver", "pod-manager", "wrapper-server"}
	first, started := traces[id]
	second, waited := traces[waitingTrace]
	switch {
	case !started || !waited:
		return "a trace has spans without their parents, or is not there"
	case !slices.Equal(first.services, services):
		return fmt.Sprintf("there are spans of %v only", first.services)
	case !first.has(phases...) || !second.has("fn.evaluate", "fn.lease.schedule", "fn.exec"):
		return "a phase has no span"
	case !first.under("fn.evaluate", "fn.lease") || !first.under("fn.lease", leased...):
		return "a phase has another parent"
	case first.caller == "-" || second.caller != waitingSpan:
		return fmt.Sprintf("the callers' spans are %s and %s", first.caller, second.caller)
	default:
		return ""
	}
}

// installTraced installs a system of one replica of each service and at most one function pod, which is scheduled
// when the test permits it. It returns what the collector prints.
func (p place) installTraced(t *testing.T) (spans func() string) {
	t.Helper()
	ctx, namespace := suite.Context(t), s.Namespace(t)
	s.Create(ctx, t, namespace, suite.Pod("collector", s.Toolbox, "collect", ":4318"))
	address := collectorBefore(t,
		"http://"+s.Await(ctx, t, namespace, "collector", suite.Ready).Status.PodIP+":4318")
	here := strings.NewReplacer(collector, address, "value: parentbased_traceidratio", "value: parentbased_always_on")
	objects := suite.Rewrite(t, suite.Build(t,
		manifests.Combine(t, filepath.Join(root, "deploy"), "base/microservices", "tracing", "pod-template")), here.Replace)
	objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "HorizontalPodAutoscaler"
	})
	for _, o := range objects {
		if o.GetKind()+" "+o.GetName() != "ConfigMap function-pod-template" {
			continue
		}
		template, _, _ := unstructured.NestedString(o.Object, "data", "template")
		held := strings.Replace(template, "\nspec:\n", "\nspec:\n  schedulingGates: [{name: test/held}]\n", 1)
		if err := unstructured.SetNestedField(o.Object, held, "data", "template"); err != nil || held == template {
			t.Fatalf("no gate in the template: %v\n%s", err, template)
		}
	}
	p.install(t, s.OnTheBed(t, objects))
	_, err := s.Client.CoreV1().ResourceQuotas(p.functions).Create(ctx, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "one-pod"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return func() string {
		log, err := s.Client.CoreV1().Pods(namespace).GetLogs("collector", &corev1.PodLogOptions{}).DoRaw(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return string(log)
	}
}

// await returns the name of a function's pod when it has one.
func (p place) await(t *testing.T, function string) (pod string) {
	t.Helper()
	ctx := suite.Context(t)
	suite.Until(ctx, t, function+" has a pod", func() (bool, string) {
		list, err := s.Client.CoreV1().Pods(p.functions).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		for _, one := range list.Items {
			if strings.HasPrefix(one.Name, function) && one.DeletionTimestamp == nil {
				pod = one.Name
			}
		}
		return pod != "", fmt.Sprintf("there are %d pods", len(list.Items))
	})
	return pod
}

// release permits a pod to be scheduled.
func (p place) release(t *testing.T, pod string) {
	t.Helper()
	_, err := s.Client.CoreV1().Pods(p.functions).Patch(suite.Context(t), pod, types.JSONPatchType,
		[]byte(`[{"op": "remove", "path": "/spec/schedulingGates"}]`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}
