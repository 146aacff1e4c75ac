// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
)

// overlayResources returns the container's resources base, in which the function's own resources replace single
// values. The caller may modify the result. If a value of the function makes a request exceed its limit, the value
// replaces both, because Kubernetes rejects a request above its limit.
func overlayResources(base, own corev1.ResourceRequirements) corev1.ResourceRequirements {
	merged := *base.DeepCopy()
	own = *own.DeepCopy()
	merged.Requests, merged.Limits = overlayList(merged.Requests, own.Requests), overlayList(merged.Limits, own.Limits)
	if len(own.Claims) > 0 {
		merged.Claims = own.Claims
	}
	for name, request := range own.Requests {
		if limit, ok := merged.Limits[name]; ok && request.Cmp(limit) > 0 {
			merged.Limits[name] = request
		}
	}
	for name, limit := range own.Limits {
		if request, ok := merged.Requests[name]; ok && request.Cmp(limit) > 0 {
			merged.Requests[name] = limit
		}
	}
	return merged
}

func overlayList(base, own corev1.ResourceList) corev1.ResourceList {
	if base == nil {
		return own
	}
	maps.Copy(base, own)
	return base
}
