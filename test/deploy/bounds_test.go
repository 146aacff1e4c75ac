package deploy_test

import (
	"cmp"
	"fmt"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
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

// TestMemoryFollowsItsLimit holds that whoever takes requests knows how much memory there
// is, at whatever limit: five eighths of it for the program, and an eighth for requests.
func TestMemoryFollowsItsLimit(t *testing.T) {
	prefixes := map[string]string{"gateway": "FNR_", "function-runner": "FNR_GATEWAY_"}
	const byDefault = 128 << 20
	found := 0
	eachDeployable(t, func(t *testing.T, objects []runtime.Object) {
		for _, d := range of[*appsv1.Deployment](objects) {
			prefix, takes := prefixes[d.Name]
			if !takes {
				continue
			}
			found++
			c := d.Spec.Template.Spec.Containers[0]
			limit := c.Resources.Limits.Memory().Value()
			if got, want := variable(c, "GOMEMLIMIT"), fmt.Sprintf("%dMiB", limit*5/8>>20); got != want {
				t.Errorf("%s has GOMEMLIMIT %s, want %s with a limit of %d", d.Name, got, want, limit)
			}
			inHand, err := strconv.ParseInt(cmp.Or(variable(c, prefix+"MAX_IN_HAND_BYTES"), strconv.Itoa(byDefault)), 10, 64)
			if err != nil || inHand != limit/8 {
				t.Errorf("%s takes %d bytes of requests (%v), want %d with a limit of %d", d.Name, inHand, err, limit/8, limit)
			}
		}
	})
	if found == 0 {
		t.Error("nobody takes requests")
	}
}
