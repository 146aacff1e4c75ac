// SPDX-License-Identifier: Apache-2.0

package cacheconfig

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// entry is an entry of the pod cache configuration, with the warnings and errors about its fields.
type entry struct {
	Entry
	where    string // position in the file, for users
	warnings []string
	problems []error
}

func (e *entry) addProblem(format string, args ...any) {
	e.problems = append(e.problems, fmt.Errorf("%s: "+format, append([]any{e.where}, args...)...))
}

func (e *entry) addWarning(format string, args ...any) {
	e.warnings = append(e.warnings, fmt.Sprintf("%s: "+format, append([]any{e.where}, args...)...))
}

// readObject parses an entry that is a YAML object. It returns the field "name", or nil if the field is missing.
func (e *entry) readObject(item *yaml.Node) *yaml.Node {
	fields := make(map[string]*yaml.Node)
	for i := 0; i+1 < len(item.Content); i += 2 {
		field := item.Content[i].Value
		if _, ok := fields[field]; ok {
			e.addWarning("%s occurs twice: the second entry is ignored", field)
			continue
		}
		fields[field] = resolveAlias(item.Content[i+1])
	}
	name := fields["name"]
	if name != nil {
		e.where += fmt.Sprintf(" (%q)", name.Value)
	}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		e.readField(field, fields[field])
	}
	return name
}

func (e *entry) readField(field string, value *yaml.Node) {
	switch field {
	case "name":
	case "timeToLive":
		e.setDuration(&e.TTL, field, value)
	case "podReadyTimeout":
		e.setDuration(&e.ReadyTimeout, field, value)
	case "maxEvaluationTime":
		e.setDuration(&e.MaxEvaluationTime, field, value)
	case "maxWaitlistLength":
		e.setNumber(&e.MaxWaitlistLength, field, value)
	case "maxParallelPodsPerFunction":
		e.setNumber(&e.MaxPods, field, value)
	case "maxConcurrency":
		e.setNumber(&e.MaxConcurrency, field, value)
	case "maxQueue":
		e.setNumber(&e.MaxQueue, field, value)
	case "minPods":
		e.MinPods = e.setCount(field, value, "none", maxMinPods)
	case "prefork":
		e.Prefork = e.setCount(field, value, "off", function.MaxPrefork)
	case "resources":
		e.setResources(value)
	default:
		e.addWarning("unknown field %q is ignored", field)
	}
}

// setDuration parses and stores a duration such as 30m. It adds an error if the duration is invalid.
func (e *entry) setDuration(to *time.Duration, field string, value *yaml.Node) {
	if value.Tag == nullTag {
		return
	}
	d, err := time.ParseDuration(value.Value)
	if err != nil || d <= 0 {
		e.addProblem("%s is %q: it must be a time of more than zero with its unit, such as 30m", field, value.Value)
		return
	}
	*to = d
}

// setNumber parses and stores a whole number. Zero means the default, as if the field were missing.
func (e *entry) setNumber(to *int, field string, value *yaml.Node) {
	if n := e.setCount(field, value, "the default", math.MaxInt32); n != nil {
		*to = *n
	}
}

// maxMinPods is the maximum value of minPods. A greater value is likely a mistake, and would keep all these pods
// running.
const maxMinPods = 1000

// setCount parses a whole number from zero to most. It returns nil if the value is null or invalid. The argument none
// is the meaning of zero in error texts, for example "off".
func (e *entry) setCount(field string, value *yaml.Node, none string, most int) *int {
	if value.Tag == nullTag {
		return nil
	}
	n, err := strconv.Atoi(value.Value)
	if err != nil || n < 0 || n > most {
		e.addProblem("%s is %q: it must be a whole number from 0 (%s) to %d", field, value.Value, none, most)
		return nil
	}
	return &n
}

// setResources parses the field resources, which has the same format as the resources of a Kubernetes container.
func (e *entry) setResources(value *yaml.Node) {
	if value.Tag == nullTag {
		return
	}
	var raw any
	if err := value.Decode(&raw); err != nil {
		e.addProblem("resources: %w", err)
		return
	}
	var resources corev1.ResourceRequirements
	unknown, err := podspec.Convert(raw, &resources)
	if err != nil {
		e.addProblem("resources: they must have a container's format, such as "+
			"{requests: {cpu: 100m}, limits: {memory: 1Gi}}: %w", err)
		return
	}
	for _, problem := range unknown {
		e.addWarning("resources: %v is ignored", problem)
	}
	for _, problem := range podspec.CheckResources(resources.Requests, resources.Limits) {
		e.addProblem("resources: %w", problem)
	}
	e.Resources = &resources
}
