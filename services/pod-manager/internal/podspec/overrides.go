// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Overrides contains a function's own values for fields of the pod template. Unset fields keep the template's values.
type Overrides struct {
	// ServiceAccount is the name of the service account of the function's pods.
	ServiceAccount string `json:",omitempty"`
	// SecurityContext replaces the whole security context of the function's pods.
	SecurityContext *corev1.PodSecurityContext `json:",omitempty"`
	// Init contains the values for the first init container, and Function the values for the function container.
	Init, Function ContainerOverrides
}

// ContainerOverrides contains a function's own values for a container of the pod template. A value replaces the
// template's value as a whole.
type ContainerOverrides struct {
	Requests corev1.ResourceList    `json:",omitempty"`
	Limits   corev1.ResourceList    `json:",omitempty"`
	EnvFrom  []corev1.EnvFromSource `json:",omitempty"`
	Env      []corev1.EnvVar        `json:",omitempty"`
}

// applyTo applies the overrides to the spec of a pod. The function container must be the first container.
func (o *Overrides) applyTo(spec *corev1.PodSpec) {
	if o.ServiceAccount != "" {
		spec.ServiceAccountName = o.ServiceAccount
		// Clear the deprecated field, because the API server stores the template's service account there too.
		spec.DeprecatedServiceAccount = ""
	}
	if o.SecurityContext != nil {
		spec.SecurityContext = o.SecurityContext.DeepCopy()
	}
	o.Function.applyTo(&spec.Containers[0])
	if len(spec.InitContainers) > 0 {
		o.Init.applyTo(&spec.InitContainers[0])
	}
}

func (o *ContainerOverrides) applyTo(c *corev1.Container) {
	own := (&corev1.Container{Env: o.Env, EnvFrom: o.EnvFrom}).DeepCopy()
	if o.Env != nil {
		c.Env = own.Env
	}
	if o.EnvFrom != nil {
		c.EnvFrom = own.EnvFrom
	}
	if o.Requests == nil && o.Limits == nil {
		return
	}
	if o.Requests != nil {
		c.Resources.Requests = nil
	}
	if o.Limits != nil {
		c.Resources.Limits = nil
	}
	c.Resources = overlayResources(c.Resources, corev1.ResourceRequirements{Requests: o.Requests, Limits: o.Limits})
}

// CheckResources returns an error for each negative amount, and for each request above its limit. Kubernetes would
// reject every pod with such resources.
func CheckResources(requests, limits corev1.ResourceList) []error {
	var problems []error
	for _, amounts := range []corev1.ResourceList{requests, limits} {
		for _, name := range slices.Sorted(maps.Keys(amounts)) {
			if amount := amounts[name]; amount.Sign() < 0 {
				problems = append(problems, fmt.Errorf("%s is %s: it must be zero or more", name, &amount))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		request := requests[name]
		if limit, ok := limits[name]; ok && request.Cmp(limit) > 0 {
			problems = append(problems, fmt.Errorf("the request of %s %s is more than the limit of %s", &request, name, &limit))
		}
	}
	return problems
}

// overlayResources returns the resources of a container, with single values replaced by the function's own values.
// Kubernetes rejects a request above its limit. If the function's own value would cause this conflict, it becomes both
// the request and the limit.
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
