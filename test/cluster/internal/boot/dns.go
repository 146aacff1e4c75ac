// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
)

const (
	dnsService = "kube-dns"
	dnsPort    = 53
)

// serveDNS creates a Service and an EndpointSlice for the name server, so that pods can reach it. The Service has no
// selector, because the name server runs as a process on the node, not in a pod.
func serveDNS(ctx context.Context, client kubernetes.Interface) error {
	var servicePorts []corev1.ServicePort
	var endpointPorts []discoveryv1.EndpointPort
	for name, protocol := range map[string]corev1.Protocol{"dns": corev1.ProtocolUDP, "dns-tcp": corev1.ProtocolTCP} {
		servicePorts = append(servicePorts, corev1.ServicePort{Name: name, Protocol: protocol, Port: dnsPort})
		endpointPorts = append(endpointPorts,
			discoveryv1.EndpointPort{Name: &name, Protocol: &protocol, Port: new(int32(dnsPort))})
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: dnsService, Labels: map[string]string{"k8s-app": dnsService}},
		Spec:       corev1.ServiceSpec{ClusterIP: layout.DNSAddress, Ports: servicePorts},
	}
	if err := createObject(ctx, service, client.CoreV1().Services(metav1.NamespaceSystem)); err != nil {
		return err
	}
	endpoints := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: dnsService, Labels: map[string]string{discoveryv1.LabelServiceName: dnsService}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{layout.NodeAddress}}},
		Ports:       endpointPorts,
	}
	return createObject(ctx, endpoints, client.DiscoveryV1().EndpointSlices(metav1.NamespaceSystem))
}
