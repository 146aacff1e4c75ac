// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
)

// overlay returns a container's resources with a function's own in their place, one by
// one: what a function says nothing about stays as it was. The result belongs to the
// caller.
//
// Where what one says does not fit with what the other says, the function's counts, since
// Kubernetes rejects a request above its limit: a larger request takes the limit along,
// and a smaller limit the request.
func overlay(base, own corev1.ResourceRequirements) corev1.ResourceRequirements {
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
