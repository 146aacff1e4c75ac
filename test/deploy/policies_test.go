// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// reaches reports whether one pod can connect to another: policies of both must permit it.
func reaches(t *testing.T, objects []runtime.Object, from, to pod, protocol corev1.Protocol, port int32) bool {
	t.Helper()
	out := func(p *networkingv1.NetworkPolicy) bool {
		return slices.ContainsFunc(p.Spec.Egress, func(r networkingv1.NetworkPolicyEgressRule) bool {
			return allows(t, p, r.To, r.Ports, to, protocol, port)
		})
	}
	in := func(p *networkingv1.NetworkPolicy) bool {
		return slices.ContainsFunc(p.Spec.Ingress, func(r networkingv1.NetworkPolicyIngressRule) bool {
			return allows(t, p, r.From, r.Ports, from, protocol, port)
		})
	}
	return passes(t, objects, from, networkingv1.PolicyTypeEgress, out) &&
		passes(t, objects, to, networkingv1.PolicyTypeIngress, in)
}

// passes reports whether the policies for a pod permit a connection in one direction: if any of
// them does, or if there is none.
func passes(t *testing.T, objects []runtime.Object, which pod, direction networkingv1.PolicyType, lets func(
	*networkingv1.NetworkPolicy) bool,
) bool {
	t.Helper()
	isolated := false
	for _, p := range of[*networkingv1.NetworkPolicy](objects) {
		if p.Namespace != which.namespace || !slices.Contains(p.Spec.PolicyTypes, direction) ||
			!matches(t, &p.Spec.PodSelector, which.labels) {
			continue
		}
		if lets(p) {
			return true
		}
		isolated = true
	}
	return !isolated
}

// allows reports whether a policy's rule, which names peers and ports, is for this peer and port. A
// rule without peers or ports is for all.
func allows(t *testing.T, p *networkingv1.NetworkPolicy, peers []networkingv1.NetworkPolicyPeer,
	ports []networkingv1.NetworkPolicyPort, other pod, protocol corev1.Protocol, port int32,
) bool {
	t.Helper()
	isPeer := func(peer networkingv1.NetworkPolicyPeer) bool {
		if peer.IPBlock != nil {
			return within(t, peer.IPBlock, other.address())
		}
		if other.namespace == "" {
			return false // only pods have labels
		}
		namespace := other.namespace == p.Namespace
		if peer.NamespaceSelector != nil {
			namespace = matches(t, peer.NamespaceSelector, labels.Set{corev1.LabelMetadataName: other.namespace})
		}
		return namespace && (peer.PodSelector == nil || matches(t, peer.PodSelector, other.labels))
	}
	isPort := func(allowed networkingv1.NetworkPolicyPort) bool {
		if allowed.EndPort != nil || allowed.Protocol == nil || allowed.Port == nil {
			t.Errorf("network policy %s has a port %+v that this test does not support", p.Name, allowed)
		}
		return *allowed.Protocol == protocol && allowed.Port.IntVal == port
	}
	return (len(peers) == 0 || slices.ContainsFunc(peers, isPeer)) &&
		(len(ports) == 0 || slices.ContainsFunc(ports, isPort))
}

// within reports whether an address is in a block. Exceptions must be part of the block, or the
// API server rejects the policy.
func within(t *testing.T, block *networkingv1.IPBlock, address netip.Addr) bool {
	t.Helper()
	all := netip.MustParsePrefix(block.CIDR)
	in := all.Contains(address)
	for _, text := range block.Except {
		except := netip.MustParsePrefix(text)
		if !all.Contains(except.Addr()) || except.Bits() <= all.Bits() || except != except.Masked() {
			t.Errorf("%s is excepted from %s, and no part of it", except, all)
		}
		in = in && !except.Contains(address)
	}
	return in
}

// matches reports whether a selector matches the labels.
func matches(t *testing.T, selector *metav1.LabelSelector, set labels.Set) bool {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return s.Matches(set)
}
