// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Overrides are the values with which a function replaces values of the template. Unset values keep the template's.
type Overrides struct {
	// ServiceAccount is the name of the pods' service account.
	ServiceAccount string `json:",omitempty"`
	// SecurityContext replaces the pods' security context as a whole.
	SecurityContext *corev1.PodSecurityContext `json:",omitempty"`
	// Init applies to the first init container, and Function to the function container.
	Init, Function ContainerOverrides
}

// ContainerOverrides replace values of a container. Each field replaces the template's field as a whole.
type ContainerOverrides struct {
	Requests corev1.ResourceList    `json:",omitempty"`
	Limits   corev1.ResourceList    `json:",omitempty"`
	EnvFrom  []corev1.EnvFromSource `json:",omitempty"`
	Env      []corev1.EnvVar        `json:",omitempty"`
}

// applyTo changes the spec of a pod whose first container is the function's.
func (o *Overrides) applyTo(spec *corev1.PodSpec) {
	if o.ServiceAccount != "" {
		// The API server copies the account's name into the field of former versions.
		spec.ServiceAccountName, spec.DeprecatedServiceAccount = o.ServiceAccount, ""
	}
	if o.SecurityContext != nil {
		spec.SecurityContext = o.SecurityContext.DeepCopy()
	}
	o.Function.applyTo(&spec.Containers[0])
	if len(spec.InitContainers) > 0 {
		o.Init.applyTo(&spec.InitContainers[0])
	}
}

// applyTo changes a container.
func (o *ContainerOverrides) applyTo(c *corev1.Container) {
	if o.Env != nil {
		c.Env = copied(o.Env, (*corev1.EnvVar).DeepCopy)
	}
	if o.EnvFrom != nil {
		c.EnvFrom = copied(o.EnvFrom, (*corev1.EnvFromSource).DeepCopy)
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

// copied returns deep copies.
func copied[T any](all []T, deepCopy func(*T) *T) []T {
	out := make([]T, 0, len(all))
	for i := range all {
		out = append(out, *deepCopy(&all[i]))
	}
	return out
}

// CheckResources returns the reasons for which Kubernetes would reject each pod with these resources: negative
// amounts, and requests above their limits.
func CheckResources(requests, limits corev1.ResourceList) []error {
	var problems []error
	for _, amounts := range []corev1.ResourceList{requests, limits} {
		for _, name := range slices.Sorted(maps.Keys(amounts)) {
			if amount := amounts[name]; amount.Sign() < 0 {
				problems = append(problems, fmt.Errorf("%s is %s: it has to be zero or more", name, &amount))
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
