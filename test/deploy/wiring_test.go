// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// selected returns the Deployments whose pods a selector matches.
func selected(t *testing.T, objects []runtime.Object, selector *metav1.LabelSelector) []*appsv1.Deployment {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(of[*appsv1.Deployment](objects), func(d *appsv1.Deployment) bool {
		return !s.Matches(labels.Set(d.Spec.Template.Labels))
	})
}

func TestServicesLeadToPods(t *testing.T) {
	eachDeployable(t, func(t *testing.T, objects []runtime.Object) {
		for _, s := range of[*corev1.Service](objects) {
			found := selected(t, objects, &metav1.LabelSelector{MatchLabels: s.Spec.Selector})
			if len(found) != 1 {
				t.Errorf("Service %s selects %d Deployments", s.Name, len(found))
				continue
			}
			for _, port := range s.Spec.Ports {
				has := slices.ContainsFunc(found[0].Spec.Template.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool {
					return p.Name == port.TargetPort.String() && p.ContainerPort == port.Port
				})
				if !has {
					t.Errorf("Service %s leads to port %s, which %s does not have as %d", s.Name, port.TargetPort.String(),
						found[0].Name, port.Port)
				}
			}
		}
	})
}

func TestAddressesAreServices(t *testing.T) {
	eachDeployable(t, func(t *testing.T, objects []runtime.Object) {
		addresses := map[string]bool{}
		for _, s := range of[*corev1.Service](objects) {
			for _, p := range s.Spec.Ports {
				addresses[s.Name+":"+strconv.Itoa(int(p.Port))] = true
			}
		}
		if !addresses["function-runner:9445"] {
			t.Error("Porch finds nothing at function-runner:9445")
		}
		for _, d := range of[*appsv1.Deployment](objects) {
			for _, v := range d.Spec.Template.Spec.Containers[0].Env {
				if u, err := url.Parse(v.Value); err == nil && isHTTP(u) && !addresses[u.Host] && u.Host != collector {
					t.Errorf("%s: %s=%s is no Service", d.Name, v.Name, v.Value)
				}
			}
		}
	})
}

// isHTTP reports whether a setting is the address of a service.
func isHTTP(u *url.URL) bool { return u.Scheme == "http" || u.Scheme == "https" }

// TestReplicasAreCalledByAddress checks the names by which our services call each other: a Service with an
// address of its own would hide which replica is silent.
func TestReplicasAreCalledByAddress(t *testing.T) {
	eachDeployable(t, func(t *testing.T, objects []runtime.Object) {
		headless := map[string]bool{}
		for _, s := range of[*corev1.Service](objects) {
			headless[s.Name] = s.Spec.ClusterIP == corev1.ClusterIPNone
		}
		for _, d := range of[*appsv1.Deployment](objects) {
			for _, v := range d.Spec.Template.Spec.Containers[0].Env {
				u, err := url.Parse(v.Value)
				if err == nil && isHTTP(u) && u.Host != collector && !headless[u.Hostname()] {
					t.Errorf("%s: %s=%s is no headless Service", d.Name, v.Name, v.Value)
				}
			}
		}
		for _, name := range []string{"function-runner", "gateway", "image-resolver"} {
			if headless[name] {
				t.Errorf("Service %s is headless: that of an earlier version cannot be changed into it", name)
			}
		}
	})
}

func TestScalingAndPoliciesFindTheirPods(t *testing.T) {
	eachDeployable(t, func(t *testing.T, objects []runtime.Object) {
		deployments := of[*appsv1.Deployment](objects)
		scaled, budgeted, covered := map[string]bool{}, map[string]bool{}, map[string]bool{}
		for _, h := range of[*autoscalingv2.HorizontalPodAutoscaler](objects) {
			i := slices.IndexFunc(deployments, func(d *appsv1.Deployment) bool { return d.Name == h.Spec.ScaleTargetRef.Name })
			if i < 0 || deployments[i].Spec.Replicas != nil {
				t.Errorf("autoscaler %s scales nothing, or a Deployment that has a number of its own", h.Name)
			}
			scaled[h.Spec.ScaleTargetRef.Name] = true
		}
		for _, b := range of[*policyv1.PodDisruptionBudget](objects) {
			found := selected(t, objects, b.Spec.Selector)
			if len(found) != 1 {
				t.Errorf("disruption budget %s is for %d Deployments", b.Name, len(found))
				continue
			}
			budgeted[found[0].Name] = true
		}
		for _, p := range of[*networkingv1.NetworkPolicy](objects) {
			if p.Namespace != "porch-system" || p.Name == "mesh" || len(selected(t, objects, &p.Spec.PodSelector)) > 1 {
				continue
			}
			for _, d := range selected(t, objects, &p.Spec.PodSelector) {
				covered[d.Name] = true
			}
		}
		for _, d := range deployments {
			if !covered[d.Name] {
				t.Errorf("no network policy is for %s", d.Name)
			}
			if strings.Contains(t.Name(), "dev") {
				continue // one of each, and a node of the developer's own
			}
			if !budgeted[d.Name] {
				t.Errorf("no disruption budget is for %s", d.Name)
			}
			if grows := d.Name == "gateway" || d.Name == "pod-manager"; scaled[d.Name] != grows {
				t.Errorf("%s has an autoscaler: %v, want %v", d.Name, scaled[d.Name], grows)
			}
		}
	})
}

// TestFunctionsReachNothing tests the policies that isolate a misbehaving function.
func TestFunctionsReachNothing(t *testing.T) {
	eachDeployable(t, func(t *testing.T, objects []runtime.Object) {
		found := false
		for _, p := range of[*networkingv1.NetworkPolicy](objects) {
			if p.Namespace != "porch-fn-system" {
				continue
			}
			found = found || (len(p.Spec.PodSelector.MatchLabels) == 0 &&
				slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress))
			if len(p.Spec.Egress) > 0 && p.Name != "tracing" {
				t.Errorf("network policy %s lets something out", p.Name)
			}
			checkEgress(t, p)
		}
		if !found {
			t.Error("no network policy is for all function pods")
		}
	})
}

// collector is the address to which the component for tracing sends traces: not one of our
// Services.
const collector = "otel-collector.observability:4318"

// egress are the ports that tracing opens, by namespace: the collector's, and those of name
// servers.
var egress = map[string][]int32{"observability": {4318}, "kube-system": {53}, "openshift-dns": {5353}}

// checkEgress checks that a policy permits only the connections that tracing needs.
func checkEgress(t *testing.T, p *networkingv1.NetworkPolicy) {
	t.Helper()
	for _, rule := range p.Spec.Egress {
		if len(rule.To) == 0 || len(rule.Ports) == 0 {
			t.Errorf("network policy %s/%s has a rule for all peers or for every port", p.Namespace, p.Name)
		}
		for _, to := range rule.To {
			if to.NamespaceSelector == nil {
				t.Errorf("network policy %s/%s lets something out to %v", p.Namespace, p.Name, to)
				continue
			}
			if name := to.NamespaceSelector.MatchLabels[corev1.LabelMetadataName]; name != "observability" &&
				to.PodSelector == nil {
				t.Errorf("network policy %s/%s lets something out to all of %s", p.Namespace, p.Name, name)
			}
			open := egress[to.NamespaceSelector.MatchLabels[corev1.LabelMetadataName]]
			for _, port := range rule.Ports {
				if port.Port == nil || port.EndPort != nil || !slices.Contains(open, port.Port.IntVal) {
					t.Errorf("network policy %s/%s opens port %v of %v", p.Namespace, p.Name, port.Port, to.NamespaceSelector)
				}
			}
		}
	}
}

func TestTracingOpensNoMoreThanItTakes(t *testing.T) {
	policies := 0
	const name = "microservices+tracing"
	for _, p := range of[*networkingv1.NetworkPolicy](objects(t, name, manifests.Combinations(t, deploy)[name])) {
		if p.Name == "tracing" {
			policies++
			checkEgress(t, p)
		}
	}
	if policies != 2 {
		t.Errorf("there are %d policies, want one for our services and one for function pods", policies)
	}
}

func TestRolesAreBoundToAccounts(t *testing.T) {
	eachDeployable(t, func(t *testing.T, objects []runtime.Object) {
		accounts, roles := map[string]bool{}, map[string]bool{}
		for _, a := range of[*corev1.ServiceAccount](objects) {
			accounts[a.Name] = true
		}
		for _, r := range of[*rbacv1.Role](objects) {
			roles[r.Namespace+"/"+r.Name] = true
			for _, rule := range r.Rules {
				if slices.Contains(rule.Verbs, "*") || slices.Contains(rule.Resources, "*") {
					t.Errorf("role %s has a wildcard", r.Name)
				}
			}
		}
		for _, b := range of[*rbacv1.RoleBinding](objects) {
			if !roles[b.Namespace+"/"+b.RoleRef.Name] {
				t.Errorf("binding %s is to no role", b.Name)
			}
			// A right for an account of the other mode would be Porch's, if that is beside ours.
			if len(b.Subjects) == 0 || slices.ContainsFunc(b.Subjects, func(
				s rbacv1.Subject,
			) bool {
				return !accounts[s.Name]
			}) {
				t.Errorf("binding %s is for %v, which do not all exist", b.Name, b.Subjects)
			}
		}
		for _, d := range of[*appsv1.Deployment](objects) {
			if !accounts[d.Spec.Template.Spec.ServiceAccountName] {
				t.Errorf("%s runs as %q, which does not exist", d.Name, d.Spec.Template.Spec.ServiceAccountName)
			}
		}
		for _, r := range of[*rbacv1.ClusterRole](objects) {
			t.Errorf("ClusterRole %s: no program needs rights in the whole cluster", r.Name)
		}
		for _, b := range of[*rbacv1.ClusterRoleBinding](objects) {
			t.Errorf("ClusterRoleBinding %s: no program needs rights in the whole cluster", b.Name)
		}
	})
}

func TestImagesAreOurPrograms(t *testing.T) {
	eachDeployable(t, func(t *testing.T, objects []runtime.Object) {
		for _, d := range of[*appsv1.Deployment](objects) {
			c := d.Spec.Template.Spec.Containers[0]
			images := map[string]string{d.Name: c.Image}
			if image := variable(c, "WRAPPER_SERVER_IMAGE"); image != "" {
				images["wrapper-server"] = image
			}
			for program, image := range images {
				if !strings.Contains(image, "/"+program+":") {
					t.Errorf("%s is image %s", program, image)
				}
			}
		}
	})
}
