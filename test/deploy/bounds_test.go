package deploy_test

import (
	"slices"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// prefixes are those of the pod-manager's variables, by the Deployment that it is in.
var prefixes = map[string]string{"pod-manager": "FNR_", "function-runner": "FNR_POD_MANAGER_"}

// TestIdlePodsMakeRoomBeforeTheQuota holds that whoever manages pods knows a limit below
// the namespace's quota: the API server takes no idle pod away.
func TestIdlePodsMakeRoomBeforeTheQuota(t *testing.T) {
	found := map[string]bool{}
	eachDeployable(t, func(t *testing.T, objects []runtime.Object) {
		for _, quota := range of[*corev1.ResourceQuota](objects) {
			for _, d := range of[*appsv1.Deployment](objects) {
				prefix, manages := prefixes[d.Name]
				if !manages {
					continue
				}
				found[d.Name] = true
				limit, err := strconv.ParseInt(variable(d.Spec.Template.Spec.Containers[0], prefix+"MAX_PODS"), 10, 64)
				for _, kind := range []corev1.ResourceName{"count/pods", "count/services"} {
					if amount := quota.Spec.Hard[kind]; err != nil || limit <= 0 || limit >= amount.Value() {
						t.Errorf("%s makes up to %d pods (%v), and the quota of %s is %s", d.Name, limit, err, kind, &amount)
					}
				}
			}
		}
	})
	if len(found) != len(prefixes) {
		t.Errorf("a quota is there for %v only, want one in both modes", found)
	}
}

// prometheus is a pod that scrapes metrics, and stranger another one.
var (
	prometheus = labels.Set{corev1.LabelMetadataName: "monitoring"}
	stranger   = labels.Set{corev1.LabelMetadataName: "elsewhere"}
)

// admits says whether a policy lets pods of a namespace with these labels in to a port,
// whatever their own labels are.
func admits(t *testing.T, p *networkingv1.NetworkPolicy, namespace labels.Set, port int32) bool {
	t.Helper()
	from := func(peer networkingv1.NetworkPolicyPeer) bool {
		if peer.NamespaceSelector == nil || peer.PodSelector != nil {
			return false
		}
		s, err := metav1.LabelSelectorAsSelector(peer.NamespaceSelector)
		if err != nil {
			t.Fatal(err)
		}
		return s.Matches(namespace)
	}
	return slices.ContainsFunc(p.Spec.Ingress, func(rule networkingv1.NetworkPolicyIngressRule) bool {
		return slices.ContainsFunc(rule.From, from) && slices.ContainsFunc(rule.Ports, func(p networkingv1.NetworkPolicyPort) bool {
			return p.Port.IntVal == port
		})
	})
}

// TestMetricsCanBeScraped holds that Prometheus reaches all that has metrics: our
// services, and function pods. In production nobody else does.
func TestMetricsCanBeScraped(t *testing.T) {
	eachDeployable(t, func(t *testing.T, objects []runtime.Object) {
		restricted := len(of[*corev1.ResourceQuota](objects)) > 0 // as production has
		want := map[string]bool{"function-pods": true}
		for _, d := range of[*appsv1.Deployment](objects) {
			want[d.Name] = true
		}
		for _, p := range of[*networkingv1.NetworkPolicy](objects) {
			if !want[p.Name] {
				continue
			}
			delete(want, p.Name)
			if !admits(t, p, prometheus, 9464) {
				t.Errorf("network policy %s keeps Prometheus out", p.Name)
			}
			if admits(t, p, stranger, 9464) == restricted {
				t.Errorf("network policy %s lets everybody see metrics: %v, want %v", p.Name, !restricted, !restricted)
			}
		}
		if len(want) > 0 {
			t.Errorf("no network policies are for %v", want)
		}
	})
}

// TestAPIServerIsReached holds the ports at which API servers listen. Many networks ask
// policies about that port, and not about the one of the Service.
func TestAPIServerIsReached(t *testing.T) {
	for _, p := range of[*networkingv1.NetworkPolicy](combined(t, "microservices")) {
		if p.Name != "pod-manager" {
			continue
		}
		open := map[int32]bool{}
		for _, rule := range p.Spec.Egress {
			for _, port := range rule.Ports {
				open[port.Port.IntVal] = open[port.Port.IntVal] || len(rule.To) == 0
			}
		}
		for port, reason := range map[int32]string{443: "the Service", 6443: "kubeadm, k3s", 8443: "minikube", 16443: "MicroK8s"} {
			if !open[port] {
				t.Errorf("the pod-manager cannot call API servers at %d (%s)", port, reason)
			}
		}
		return
	}
	t.Error("no network policy is for the pod-manager")
}
