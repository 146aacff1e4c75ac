// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// Callers by their identity in the mesh. The last one has none: it is not in the mesh.
const (
	asGateway    = "porch-system/gateway"
	asPodManager = "porch-system/pod-manager"
	asResolver   = "porch-system/image-resolver"
	asRunner     = "porch-system/porch-fn-runner"
	asPorch      = "porch-system/porch-server"
	asFunction   = "porch-fn-system/default"
	asPrometheus = "monitoring/prometheus"
	asStranger   = "elsewhere/gateway" // the name alone is not enough
	asUnknown    = ""
)

// TestMeshPermitsKnownCallersOnly tests which callers the mesh permits to call which program.
func TestMeshPermitsKnownCallersOnly(t *testing.T) {
	everyone := []string{
		asGateway, asPodManager, asResolver, asRunner, asPorch, asFunction, asPrometheus,
		asStranger, asUnknown,
	}
	ofPorch := []string{asGateway, asPodManager, asResolver, asRunner, asPorch} // all that is in its namespace
	managers := []string{asGateway, asPodManager, asRunner}
	scrapers := []string{asPrometheus, asUnknown} // network policies decide about callers outside of the mesh
	type access struct {
		program string
		port    int
		callers []string
	}
	for base, want := range map[string][]access{
		"microservices": {
			{"gateway", 9445, ofPorch},
			{"pod-manager", 9448, []string{asGateway}},
			{"image-resolver", 9449, []string{asGateway, asPodManager}},
			{"function", 9446, managers},
			{"gateway", 9464, scrapers},
			{"pod-manager", 9464, scrapers},
			{"image-resolver", 9464, scrapers},
			{"function", 9464, scrapers},
			{"gateway", 1, nil},
			{"pod-manager", 1, nil},
			{"image-resolver", 1, nil},
			{"function", 1, nil},
			{"porch-server", 1, everyone}, // the mesh has no policy for Porch's own pods
			{"Porch's runner", 1, everyone},
			{"Porch's runner", 9445, everyone},
		},
		"function-runner": {
			{"function-runner", 9445, ofPorch},
			{"function", 9446, managers},
			{"function-runner", 9464, scrapers},
			{"function", 9464, scrapers},
			{"function-runner", 1, nil},
			{"porch-server", 1, everyone},
			{"Porch's runner", 1, everyone},
			{"Porch's runner", 9445, everyone},
		},
	} {
		for _, others := range [][]string{nil, {"production"}, {"porch-main"}} {
			all := combined(t, base, append([]string{"service-mesh"}, others...)...)
			for _, a := range want {
				for _, caller := range everyone {
					if got, want := mayCall(t, all, caller, a.program, a.port), slices.Contains(a.callers, caller); got != want {
						t.Errorf("%s with %v: may %q call %s at %d: %v, want %v", base, others, caller, a.program, a.port, got, want)
					}
				}
			}
		}
	}
}

// TestEndpointOfFunctionPods holds that pods are called by their addresses, unless there is a mesh, or a template may
// have one for Services.
func TestEndpointOfFunctionPods(t *testing.T) {
	for base, set := range map[string]struct{ program, variable string }{
		"microservices":   {"pod-manager", "FNR_ENDPOINT"},
		"function-runner": {"function-runner", "FNR_ENDPOINT"},
	} {
		for component, want := range map[string]string{
			"dev": "pod-ip", "service-mesh": "service", "pod-template": "service", "porch-main": "service",
		} {
			var got []string
			for _, d := range of[*appsv1.Deployment](combined(t, base, "production", component)) {
				for _, e := range d.Spec.Template.Spec.Containers[0].Env {
					if d.Name == set.program && e.Name == set.variable {
						got = append(got, e.Value)
					}
				}
			}
			if !slices.Equal(got, []string{want}) {
				t.Errorf("%s with %v: %s is %q, want %s", base, component, set.variable, got, want)
			}
		}
	}
}

// mayCall reports whether the mesh permits a caller to call a program's pods: if no policy selects
// the pods, or one of the policies that do has a rule for the caller.
func mayCall(t *testing.T, objects []runtime.Object, caller, program string, port int) bool {
	t.Helper()
	pod := podOf(objects, program)
	selected := false
	for _, p := range of[*manifests.AuthorizationPolicy](objects) {
		if p.Spec.Action != "ALLOW" {
			t.Errorf("authorization policy %s does %q, which this test does not support", p.Name, p.Spec.Action)
		}
		if p.Namespace != pod.namespace || (p.Spec.Selector != nil &&
			!labels.SelectorFromSet(p.Spec.Selector.MatchLabels).Matches(pod.labels)) {
			continue
		}
		selected = true
		if slices.ContainsFunc(p.Spec.Rules, func(r manifests.AuthorizationRule) bool { return holds(r, caller, port) }) {
			return true
		}
	}
	return !selected
}

// holds reports whether a rule is for a caller and a port. A rule without callers or ports would be
// for all of them.
func holds(rule manifests.AuthorizationRule, caller string, port int) bool {
	to, from := len(rule.To) == 0, len(rule.From) == 0
	for _, o := range rule.To {
		to = to || len(o.Operation.Ports) == 0 || slices.Contains(o.Operation.Ports, strconv.Itoa(port))
	}
	for _, f := range rule.From {
		from = from || isFrom(f.Source, caller)
	}
	return to && from
}

// isFrom reports whether a source matches the caller: all its fields must match.
func isFrom(source manifests.AuthorizationSource, caller string) bool {
	namespace, account, known := strings.Cut(caller, "/")
	is := func(principal string) bool {
		return known && (principal == "*" || principal == "cluster.local/ns/"+namespace+"/sa/"+account)
	}
	return (len(source.Principals) == 0 || slices.ContainsFunc(source.Principals, is)) &&
		!slices.ContainsFunc(source.NotPrincipals, is) &&
		(len(source.Namespaces) == 0 || (known && slices.Contains(source.Namespaces, namespace)))
}
