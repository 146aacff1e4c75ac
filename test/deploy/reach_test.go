package deploy_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// foreign are pods that are none of ours. What is outside of the cluster, or in the node's
// network, has no labels to select it by.
var foreign = map[string]pod{
	"porch":         {"porch-system", labels.Set{"app": "porch-server"}},
	"function":      {"porch-fn-system", labels.Set{"fn.kpt.dev/image": "some"}},
	"prometheus":    {"monitoring", nil},
	"stranger":      {"elsewhere", labels.Set{"app": "gateway"}}, // the label alone says nothing
	"collector":     {"observability", nil},
	"name server":   {"kube-system", labels.Set{"k8s-app": "kube-dns"}},
	"OpenShift's":   {"openshift-dns", nil},
	"the API's":     {},
	"registry":      {},
	"anybody's pod": {"elsewhere", nil},
}

// pod is what policies know of one: its namespace, and its labels.
type pod struct {
	namespace string
	labels    labels.Set
}

// podOf returns a pod of a program: a Deployment's, a foreign one, or another one in
// Porch's namespace.
func podOf(objects []runtime.Object, name string) pod {
	for _, d := range of[*appsv1.Deployment](objects) {
		if d.Name == name {
			return pod{d.Namespace, d.Spec.Template.Labels}
		}
	}
	if known, ok := foreign[name]; ok {
		return known
	}
	return pod{"porch-system", labels.Set{"app": name}}
}

// TestWhoReachesWhom holds who gets through to whom by all network policies together, and
// that nobody else does. (Kubelets' probes and port-forwarding come from the pod's own
// node, which no policy keeps out.)
func TestWhoReachesWhom(t *testing.T) {
	const (
		tcp = corev1.ProtocolTCP
		udp = corev1.ProtocolUDP
	)
	others := []string{"porch", "prometheus", "stranger"} // go where they like
	eachDeployable(t, func(t *testing.T, objects []runtime.Object) {
		everyone := append([]string{"function"}, others...)
		var ours []string
		for _, d := range of[*appsv1.Deployment](objects) {
			ours = append(ours, d.Name)
		}
		everyone = append(everyone, ours...)
		// Registries are anywhere and on any port: who asks them may go wherever it is let in.
		outside := slices.Concat(others, []string{"image-resolver", "function-runner"})
		scrapers, traced, resolvers := outside, outside, slices.Concat(others, ours)
		if len(of[*corev1.ResourceQuota](objects)) > 0 { // as production has
			scrapers = []string{"prometheus"}
		}
		if slices.ContainsFunc(of[*networkingv1.NetworkPolicy](objects), func(p *networkingv1.NetworkPolicy) bool { return p.Name == "tracing" }) {
			traced, resolvers = everyone, everyone
		}
		for _, tc := range []struct {
			to       string
			protocol corev1.Protocol
			ports    []int32
			callers  []string
		}{
			{"gateway", tcp, []int32{9445}, []string{"porch", "image-resolver"}}, // all of Porch's namespace that may go there
			{"function-runner", tcp, []int32{9445}, []string{"porch", "function-runner"}},
			{"pod-manager", tcp, []int32{9448}, []string{"gateway"}},
			{"image-resolver", tcp, []int32{9449}, []string{"gateway", "pod-manager"}},
			{"function", tcp, []int32{9446}, []string{"gateway", "pod-manager", "function-runner"}},
			{"gateway", tcp, []int32{9464}, scrapers},
			{"function-runner", tcp, []int32{9464}, scrapers},
			{"pod-manager", tcp, []int32{9464}, scrapers},
			{"image-resolver", tcp, []int32{9464}, scrapers},
			{"function", tcp, []int32{9464}, scrapers},
			{"gateway", tcp, []int32{1}, nil},
			{"function-runner", tcp, []int32{1}, nil},
			{"pod-manager", tcp, []int32{1}, nil},
			{"image-resolver", tcp, []int32{1}, nil},
			{"function", tcp, []int32{1}, nil},
			{"name server", tcp, []int32{53}, resolvers},
			{"name server", udp, []int32{53}, resolvers},
			{"OpenShift's", tcp, []int32{5353}, resolvers}, // those listen there
			{"OpenShift's", udp, []int32{5353}, resolvers},
			// Many networks ask about the port at which the API server listens, and not about
			// the Service's: those of kubeadm and k3s, minikube, MicroK8s.
			{"the API's", tcp, []int32{443, 6443, 8443, 16443}, slices.Concat(outside, []string{"pod-manager"})},
			{"registry", tcp, []int32{80, 5000}, outside},
			{"collector", tcp, []int32{4318}, traced},
			{"anybody's pod", tcp, []int32{80, 4318}, outside},
			{"porch", tcp, []int32{4443}, outside}, // whose own pods no policy is for
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
