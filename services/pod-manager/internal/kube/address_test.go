// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kube"
)

func TestAddress(t *testing.T) {
	tests := map[string]struct {
		reason        string
		podIP         bool
		ip            string
		clusterIP     string
		noService     bool
		address       string
		healthAddress string
	}{
		"service": {
			"the probe need not wait for the name to be known",
			false, "10.1.2.3", "10.96.0.1", false, address, "10.96.0.1:9446",
		},
		"service, v6": {
			"addresses with colons have brackets",
			false, "fd00::3", "fd01::1", false, address, "[fd01::1]:9446",
		},
		"headless": {
			"a template may ask for it: the name leads to the pod itself",
			false, "10.1.2.3", corev1.ClusterIPNone, false, address, "",
		},
		"no ip yet":   {"nothing is behind the Service", false, "", "10.96.0.1", false, "", ""},
		"no service":  {"the name leads nowhere", false, "10.1.2.3", "", true, "", ""},
		"pod-ip":      {"the pod's own address", true, "10.1.2.3", "", true, "10.1.2.3:9446", ""},
		"pod-ip, v6":  {"addresses with colons have brackets", true, "fd00::3", "", true, "[fd00::3]:9446", ""},
		"pod-ip, no":  {"it has none yet", true, "", "", true, "", ""},
		"pod-ip, too": {"a Service from before does not count", true, "10.1.2.3", "10.96.0.1", false, "10.1.2.3:9446", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pod, service := existing()
				pod.Status.PodIP = tc.ip
				service.Spec.ClusterIP = tc.clusterIP
				w := &world{client: client(pod, service)}
				if tc.noService {
					w = &world{client: client(pod)}
					w.fails("create", "services", func() error { return errGone })
				}
				w.run(t, func(c *kube.Config) { c.PodIP = tc.podIP })
				if o := observed(t, w.events()); o.Address != tc.address || o.HealthAddress != tc.healthAddress {
					t.Errorf("address %q, health %q, want %q, %q: %s",
						o.Address, o.HealthAddress, tc.address, tc.healthAddress, tc.reason)
				}
			})
		})
	}
}
