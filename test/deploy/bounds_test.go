// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestFunctionPodsHaveAQuota checks that each system bounds its function pods and their Services.
func TestFunctionPodsHaveAQuota(t *testing.T) {
	eachDeployable(t, func(t *testing.T, objects []runtime.Object) {
		quotas := of[*corev1.ResourceQuota](objects)
		if len(quotas) != 1 || quotas[0].Namespace != "porch-fn-system" {
			t.Fatalf("the quotas are %+v, want one in the namespace of function pods", quotas)
		}
		pods, services := quotas[0].Spec.Hard["count/pods"], quotas[0].Spec.Hard["count/services"]
		if pods.Value() != 200 || services.Value() != 200 {
			t.Errorf("the quota is of %s pods and %s Services, want 200 of each", &pods, &services)
		}
	})
}
