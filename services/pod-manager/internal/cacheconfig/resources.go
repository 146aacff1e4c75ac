// SPDX-License-Identifier: Apache-2.0

package cacheconfig

import (
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// setResources parses the field resources, which has the same format as the resources of a Kubernetes container.
func (e *entry) setResources(value *yaml.Node) {
	if value.Tag == nullTag {
		return
	}
	resources, ignored, err := decodeResources(value)
	if err != nil {
		e.addProblem("resources: %w", err)
		return
	}
	for _, problem := range ignored {
		e.addWarning("resources: %v is ignored", problem)
	}
	for _, problem := range podspec.CheckResources(resources.Requests, resources.Limits) {
		e.addProblem("resources: %w", problem)
	}
	e.Resources = &resources
}

// decodeResources returns the requests and limits in value, and warnings about parts such as unknown fields.
func decodeResources(value *yaml.Node) (resources corev1.ResourceRequirements, ignored []error, err error) {
	var raw any
	if err := value.Decode(&raw); err != nil {
		return resources, nil, err
	}
	content, err := json.Marshal(raw)
	if err != nil {
		return resources, nil, err
	}
	ignored, err = kjson.UnmarshalStrict(content, &resources)
	if err != nil {
		err = fmt.Errorf("they must have a container's format, such as {requests: {cpu: 100m}, limits: {memory: 1Gi}}: %s",
			strings.TrimPrefix(err.Error(), "json: "))
	}
	return resources, ignored, err
}
