// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"slices"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// podManagers are the Deployments that manage function pods.
var podManagers = []string{"pod-manager", "function-runner"}

// TestPodLimitIsBelowTheQuota checks that the pod limit of the pod-manager is below the namespace's
// quota: the pod-manager evicts unused pods at its limit, while the API server only refuses new
// ones at the quota.
func TestPodLimitIsBelowTheQuota(t *testing.T) {
	found := map[string]bool{}
	eachDeployable(t, func(t *testing.T, objects []runtime.Object) {
		for _, quota := range of[*corev1.ResourceQuota](objects) {
			for _, d := range of[*appsv1.Deployment](objects) {
				if !slices.Contains(podManagers, d.Name) {
					continue
				}
				found[d.Name] = true
				limit, err := strconv.ParseInt(variable(d.Spec.Template.Spec.Containers[0], "FNR_MAX_PODS"), 10, 64)
				for _, kind := range []corev1.ResourceName{"count/pods", "count/services"} {
					if amount := quota.Spec.Hard[kind]; err != nil || limit <= 0 || limit >= amount.Value() {
						t.Errorf("%s makes up to %d pods (%v), and the quota of %s is %s", d.Name, limit, err, kind, &amount)
					}
				}
			}
		}
	})
	if len(found) != len(podManagers) {
		t.Errorf("a quota is there for %v only, want one in both modes", found)
	}
}
