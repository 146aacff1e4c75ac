// SPDX-License-Identifier: Apache-2.0

package cacheconfig

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"
)

// resources reads requests and limits as containers have them.
func (e *entry) resources(value *yaml.Node) {
	if value.Tag == nullTag {
		return
	}
	var raw any
	if err := value.Decode(&raw); err != nil {
		e.problem("resources: %w", err)
		return
	}
	content, err := json.Marshal(raw)
	if err != nil {
		e.problem("resources: %w", err)
		return
	}
	var resources corev1.ResourceRequirements
	strict, err := kjson.UnmarshalStrict(content, &resources)
	if err != nil {
		e.problem("resources: they have to be as a container's, such as {requests: {cpu: 100m}, limits: {memory: 1Gi}}: %s",
			strings.TrimPrefix(err.Error(), "json: "))
		return
	}
	for _, problem := range strict {
		e.warn("resources: %v is ignored", problem)
	}
	e.balance(resources)
	e.Resources = &resources
}

// balance finds what Kubernetes would refuse at each pod: amounts below zero, and
// requests above their limits.
func (e *entry) balance(resources corev1.ResourceRequirements) {
	for _, amounts := range []corev1.ResourceList{resources.Requests, resources.Limits} {
		for _, name := range slices.Sorted(maps.Keys(amounts)) {
			if amount := amounts[name]; amount.Sign() < 0 {
				e.problem("resources: %s is %s: it has to be zero or more", name, &amount)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(resources.Requests)) {
		request := resources.Requests[name]
		if limit, ok := resources.Limits[name]; ok && request.Cmp(limit) > 0 {
			e.problem("resources: the request of %s %s is more than the limit of %s", &request, name, &limit)
		}
	}
}
