// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// podManagers are the Deployments that manage function pods.
var podManagers = []string{"pod-manager", "function-runner"}

// TestProductionHasAQuotaOfPods checks that the overlays for production bound the function pods in both modes.
func TestProductionHasAQuotaOfPods(t *testing.T) {
	found := map[string]bool{}
	eachDeployable(t, func(_ *testing.T, objects []runtime.Object) {
		for _, quota := range of[*corev1.ResourceQuota](objects) {
			for _, d := range of[*appsv1.Deployment](objects) {
				found[d.Name] = found[d.Name] || quota.Spec.Hard["count/pods"] == quota.Spec.Hard["count/services"]
			}
		}
	})
	for _, name := range podManagers {
		if !found[name] {
			t.Errorf("no overlay has a quota for the pods and Services of the %s", name)
		}
	}
}
