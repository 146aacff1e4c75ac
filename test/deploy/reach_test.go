// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"net/netip"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// foreign are pods of other systems, and callers outside of the cluster or in the node's network:
// these have no labels to select them by, but an address.
var foreign = map[string]pod{
	"porch": {namespace: "porch-system", labels: labels.Set{"app": "porch-server"}},
	// The pods of Porch's own function runner, which shares a namespace and a label with our programs.
	"Porch's runner": {namespace: "porch-system", labels: labels.Set{"app": "function-runner"}},
	"function":       {namespace: "porch-fn-system", labels: labels.Set{"fn.kpt.dev/image": "some"}},
	"prometheus":     {namespace: "monitoring"},
	"stranger":       {namespace: "elsewhere", labels: labels.Set{"app": "gateway"}}, // the label alone does not count
	"collector":      {namespace: "observability"},
	"name server":    {namespace: "kube-system", labels: labels.Set{"k8s-app": "kube-dns"}},
	"OpenShift's": {
		namespace: "openshift-dns",
		labels:    labels.Set{"dns.operator.openshift.io/daemonset-dns": "default"},
	},
	"the node's cache": {ip: "169.254.20.10"},
	"other system pod": {namespace: "kube-system", labels: labels.Set{"k8s-app": "metrics-server"}},
	"the API's":        {ip: "192.168.0.2"},
	"registry":         {ip: "203.0.113.7"},
	"IPv6 registry":    {ip: "2001:db8::7"},
	"metadata":         {ip: "169.254.169.254"},
	"AWS's metadata":   {ip: "fd00:ec2::254"},
	"Alibaba's":        {ip: "100.100.100.200"},
	"Azure's":          {ip: "168.63.129.16"},
	"some pod":         {namespace: "elsewhere"},
	"cache server":     {namespace: "valkey"},
}

// pod is the part of a pod that policies use: its namespace, its labels and its address.
type pod struct {
	namespace string
	labels    labels.Set
	ip        string // if empty, one of the cluster's
}

// address returns a pod's address.
func (p pod) address() netip.Addr {
	if p.ip == "" {
		return netip.MustParseAddr("10.244.0.9")
	}
	return netip.MustParseAddr(p.ip)
}

// podOf returns a pod of a program: a Deployment's, a foreign one, or another one in Porch's
// namespace.
func podOf(objects []runtime.Object, name string) pod {
	for _, d := range of[*appsv1.Deployment](objects) {
		if d.Name == name {
			return pod{namespace: d.Namespace, labels: d.Spec.Template.Labels}
		}
	}
	if known, ok := foreign[name]; ok {
		return known
	}
	return pod{namespace: "porch-system", labels: labels.Set{"app": name}}
}

// TestNetworkPoliciesPermitKnownCallersOnly tests which pods all network policies together let
// connect to which. (Kubelets' probes and port-forwarding come from the pod's own node, which no
// policy keeps out.)
func TestNetworkPoliciesPermitKnownCallersOnly(t *testing.T) {
	const (
		tcp = corev1.ProtocolTCP
		udp = corev1.ProtocolUDP
	)
	others := []string{"porch", "Porch's runner", "prometheus", "stranger"} // without policies of ours
	eachDeployable(t, func(t *testing.T, objects []runtime.Object) {
		everyone := append([]string{"function"}, others...)
		var ours []string
		for _, d := range of[*appsv1.Deployment](objects) {
			ours = append(ours, d.Name)
		}
		everyone = append(everyone, ours...)
		has := func(policy string) bool {
			return slices.ContainsFunc(of[*networkingv1.NetworkPolicy](objects),
				func(p *networkingv1.NetworkPolicy) bool { return p.Name == policy })
		}
		with := func(callers ...string) []string { return slices.Concat(others, callers) }
		registries, managers := with("image-resolver", "function-runner"), with("pod-manager", "function-runner")
		scrapers, traced, resolvers, cached, anyPort := others, others, with(ours...), others, others
		inNamespace := []string{"porch", "Porch's runner"}
		if has("registries-at-any-port") { // dev's, which may be pods
			scrapers, traced, anyPort = registries, registries, registries
			inNamespace = append(inNamespace, "image-resolver", "function-runner")
		}
		if slices.ContainsFunc(of[*appsv1.Deployment](objects), func(d *appsv1.Deployment) bool {
			return d.Spec.Replicas != nil && *d.Spec.Replicas == 3 // as production has
		}) {
			scrapers = []string{"prometheus"}
		}
		if has("tracing") {
			traced, resolvers = everyone, everyone
		}
		meshed := []string(nil)
		if has("mesh") { // whose policies decide about its callers
			meshed = []string{"gateway", "pod-manager", "function-runner", "Porch's runner", "prometheus"}
		}
		identified := []string(nil)
		if has("callers") { // who prove who they are
			identified = others
		}
		if has("node-local-dns") {
			cached = with(ours...)
		}
		for _, tc := range []struct {
			to       string
			protocol corev1.Protocol
			ports    []int32
			callers  []string
		}{
			{"gateway", tcp, []int32{9445}, inNamespace},
			{"gateway", tcp, []int32{9443}, identified},
			{"function-runner", tcp, []int32{9445}, inNamespace},
			{"pod-manager", tcp, []int32{9448}, []string{"gateway"}},
			{"image-resolver", tcp, []int32{9449}, []string{"gateway", "pod-manager"}},
			{"function", tcp, []int32{9446}, []string{
				"gateway", "pod-manager", "function-runner", "Porch's runner", // whose pods are in the same namespace
			}},
			{"gateway", tcp, []int32{9464}, scrapers},
			{"function-runner", tcp, []int32{9464}, scrapers},
			{"pod-manager", tcp, []int32{9464}, scrapers},
			{"image-resolver", tcp, []int32{9464}, scrapers},
			{"function", tcp, []int32{9464}, scrapers},
			{"function", tcp, []int32{15008}, meshed},
			{"gateway", tcp, []int32{1}, nil},
			{"function-runner", tcp, []int32{1}, nil},
			{"pod-manager", tcp, []int32{1}, nil},
			{"image-resolver", tcp, []int32{1}, nil},
			{"function", tcp, []int32{1}, nil},
			// Names: the cluster's DNS pods, and nothing beside them or outside.
			{"name server", tcp, []int32{53}, resolvers},
			{"name server", udp, []int32{53}, resolvers},
			{"OpenShift's", tcp, []int32{5353}, resolvers}, // OpenShift's name servers listen there
			{"OpenShift's", udp, []int32{5353}, resolvers},
			{"the node's cache", udp, []int32{53}, cached},
			{"the node's cache", tcp, []int32{53}, cached},
			{"other system pod", tcp, []int32{53, 10250}, anyPort},
			{"registry", udp, []int32{53}, anyPort},
			// Many networks ask about the port where the API server listens, and not about
			// the Service's: those of kubeadm and k3s, minikube, MicroK8s.
			{"the API's", tcp, []int32{443}, append(managers, "image-resolver")}, // a registry may be there
			{"the API's", tcp, []int32{6443, 8443, 16443}, append(managers, anyPort...)},
			{"registry", tcp, []int32{443}, append(registries, managers...)},
			{"registry", tcp, []int32{80, 5000}, anyPort},
			{"IPv6 registry", tcp, []int32{80}, others},
			{"some pod", tcp, []int32{80, 4318}, anyPort},
			{"porch", tcp, []int32{4443}, anyPort}, // whose own pods no policy is for
			{"Porch's runner", tcp, []int32{9445, 9464}, anyPort},
			{"collector", tcp, []int32{4318}, traced},
			// Metadata services have credentials of the node.
			{"metadata", tcp, []int32{80}, others},
			{"AWS's metadata", tcp, []int32{80}, others},
			{"Alibaba's", tcp, []int32{80}, others},
			{"Azure's", tcp, []int32{80, 32526}, others},
			{"metadata", tcp, []int32{443}, managers}, // on the API server's port, where none listens
		} {
			if _, known := foreign[tc.to]; !known && !slices.Contains(ours, tc.to) {
				continue
			}
			for _, caller := range everyone {
				for _, port := range tc.ports {
					want := slices.Contains(tc.callers, caller)
					if got := reaches(t, objects, podOf(objects, caller), podOf(objects, tc.to), tc.protocol, port); got != want {
						t.Errorf("%s reaches %s at %d/%s: %v, want %v", caller, tc.to, port, tc.protocol, got, want)
					}
				}
			}
		}
	})
}

// TestPoliciesSelectOnlyOurPods checks that no policy of Porch's namespace selects a pod that only has the label app of
// one of our programs.
func TestPoliciesSelectOnlyOurPods(t *testing.T) {
	eachDeployable(t, func(t *testing.T, objects []runtime.Object) {
		for _, app := range []string{"gateway", "pod-manager", "image-resolver", "function-runner", "porch-server"} {
			pod := labels.Set{"app": app}
			for _, p := range of[*networkingv1.NetworkPolicy](objects) {
				if p.Namespace == "porch-system" && matches(t, &p.Spec.PodSelector, pod) {
					t.Errorf("network policy %s selects each pod with the label app=%s", p.Name, app)
				}
			}
			for _, p := range of[*manifests.AuthorizationPolicy](objects) {
				if p.Namespace == "porch-system" && (p.Spec.Selector == nil ||
					labels.SelectorFromSet(p.Spec.Selector.MatchLabels).Matches(pod)) {
					t.Errorf("authorization policy %s selects each pod with the label app=%s", p.Name, app)
				}
			}
		}
	})
}
