// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// collector is the address to which the component for tracing sends traces.
const collector = "http://otel-collector.observability:4318"

// span is a span as the toolbox's collector prints it.
type span struct{ trace, id, parent, service, name string }

// phases are the spans of a cold start, besides the spans of RPCs. (A node may be found, and containers
// may start, before the next report.)
var phases = []string{
	"fn.evaluate", "fn.resolve", "fn.registry.manifest", "fn.lease", "fn.lease.create", "fn.lease.connect", "fn.exec",
}

// TestTracesAreWhole has two callers evaluate in a pod, and looks for the one trace of the cold start, with
// spans of every service, each with its parent, and of the phases, and for the link to it from the other one, which
// waited for the same pod.
func TestTracesAreWhole(t *testing.T) {
	t.Parallel() // with other tests in their own namespaces
	ctx, namespace := suite.Context(t), s.Namespace(t)
	s.Create(ctx, t, namespace, suite.Pod("collector", s.Toolbox, "collect", ":4318"))
	address := "http://" + s.Await(ctx, t, namespace, "collector", suite.Ready).Status.PodIP + ":4318"
	if *observeCollector != "" {
		address = collectorBefore(t, address)
	}
	here := strings.NewReplacer(collector, address, "value: parentbased_traceidratio", "value: parentbased_always_on")
	objects := suite.Rewrite(t, suite.Build(t,
		manifests.Combine(t, filepath.Join(root, "deploy"), "base/microservices", "tracing")), here.Replace)
	at := aside("tracing")
	at.install(t, s.OnTheBed(t, objects))
	var both errgroup.Group
	conn, image := at.caller(t), inPod(t)
	evaluate := func() error { return suite.SetNamespace(ctx, conn, image, grpc.WaitForReady(true)) }
	both.Go(evaluate)
	// Without this, one of them may resolve the image, and the other one start the pod.
	suite.Until(ctx, t, "the first caller starts a pod", func() (bool, string) {
		pods, err := s.Client.CoreV1().Pods(at.functions).List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) > 0, fmt.Sprint(err)
	})
	both.Go(evaluate)
	if err := both.Wait(); err != nil {
		t.Fatal(err)
	}
	want := []string{"gateway", "image-resolver", "pod-manager", "wrapper-server"}
	suite.Until(ctx, t, fmt.Sprintf("a trace has spans of %v", want), func() (bool, string) {
		log, err := s.Client.CoreV1().Pods(namespace).GetLogs("collector", &corev1.PodLogOptions{}).DoRaw(ctx)
		if err != nil {
			t.Fatal(err)
		}
		traces, links := whole(string(log)), linked(string(log))
		return slices.ContainsFunc(traces, func(one trace) bool {
				return slices.Equal(one.services, want) && one.has(phases) && one.under("fn.lease", "fn.lease.create") &&
					links[one.id] != "" && links[one.id] != one.id
			}),
			fmt.Sprintf("whole traces have spans of %v, links to them are %v, and there are\n%s", traces, links, log)
	})
}

// linked returns the traces that others have a link to, with one of those.
func linked(log string) map[string]string {
	from := map[string]string{}
	for line := range strings.Lines(log) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "link" {
			from[fields[2]] = fields[1]
		}
	}
	return from
}

// trace is a trace in which every span has its parent, except for one root span.
type trace struct {
	id       string
	services []string
	spans    map[string]span
}

// has reports whether there are spans of all names.
func (t trace) has(names []string) bool {
	for _, name := range names {
		if !slices.ContainsFunc(slices.Collect(maps.Values(t.spans)), func(s span) bool { return s.name == name }) {
			return false
		}
	}
	return true
}

// under reports whether the spans of a name are children of one with the name of their parent.
func (t trace) under(parent, name string) bool {
	for _, s := range t.spans {
		if s.name == name && t.spans[s.parent].name != parent {
			return false
		}
	}
	return true
}

// whole returns the traces in which every span has its parent, except for one root span.
func whole(log string) []trace {
	traces := make(map[string]map[string]span)
	for line := range strings.Lines(log) {
		fields := strings.SplitN(strings.TrimSpace(line), " ", 6)
		if len(fields) != 6 || fields[0] != "span" {
			continue
		}
		one := span{fields[1], fields[2], fields[3], fields[4], fields[5]}
		if traces[one.trace] == nil {
			traces[one.trace] = make(map[string]span)
		}
		traces[one.trace][one.id] = one
	}
	var found []trace
	for id, spans := range traces {
		services, roots, lost := make(map[string]bool), 0, 0
		for _, one := range spans {
			services[one.service] = true
			if _, known := spans[one.parent]; one.parent == "-" {
				roots++
			} else if !known {
				lost++
			}
		}
		if roots == 1 && lost == 0 {
			found = append(found, trace{id, slices.Sorted(maps.Keys(services)), spans})
		}
	}
	return found
}
