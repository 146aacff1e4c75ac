// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// readYAML parses the Kubernetes object under a key of a template's ConfigMap. The object must have the version v1 and
// the given kind.
func readYAML(key, text, kind string) (raw map[string]any, warnings []string, err error) {
	if err := yaml.Unmarshal([]byte(text), &raw); err != nil {
		return nil, nil, fmt.Errorf("%s: it is not a YAML object: %w", key, err)
	}
	if got := valueOf(raw, "kind"); got != kind {
		return nil, nil, fmt.Errorf("%s: it must be of kind %s, and is of %q", key, kind, got)
	}
	if got := valueOf(raw, "apiVersion"); got != "v1" {
		return nil, nil, fmt.Errorf("%s: it must be of apiVersion v1, and is of %q", key, got)
	}
	convertToText(raw)
	return raw, warnOfDuplicates(key, text), nil
}

// decodeObject converts a v1 object, raw, into a Go type such as corev1.Pod. Unknown fields cause only warnings,
// because the example in Porch's documentation contains an unknown field.
func decodeObject(key, kind string, raw map[string]any, object any) (warnings []string, err error) {
	unknown, err := Convert(raw, object)
	if err != nil {
		return nil, fmt.Errorf("%s: it is not a v1 %s: %w", key, kind, err)
	}
	for _, problem := range unknown {
		warnings = append(warnings, fmt.Sprintf("%s: %v is ignored%s", key, problem, misplacedFieldAdvice(problem)))
	}
	return warnings, nil
}

// Convert converts a JSON value, such as a map, to a Kubernetes type. unknown contains an error for each unknown field.
func Convert(value, object any) (unknown []error, err error) {
	content, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	unknown, err = kjson.UnmarshalStrict(content, object)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	return unknown, nil
}

// valueOf returns a top-level field as text, or an empty text if the field is missing.
func valueOf(raw map[string]any, field string) string {
	if v, ok := raw[field]; ok && v != nil {
		return fmt.Sprint(v)
	}
	return ""
}

// misplacedFieldAdvice returns advice for users who wrote labels or annotations outside of metadata, or an empty text.
func misplacedFieldAdvice(problem error) string {
	for _, field := range []string{"annotations", "labels"} {
		if problem.Error() == fmt.Sprintf("unknown field %q", field) {
			return ": " + field + " belong under metadata"
		}
	}
	return ""
}

// warnOfDuplicates returns warnings about duplicate keys in a YAML text. Only the last value of a key is used.
func warnOfDuplicates(key, text string) []string {
	var raw map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &raw); err != nil {
		return []string{fmt.Sprintf("%s: %s", key, oneLine(err.Error()))}
	}
	return nil
}

// convertToText converts the values of labels and annotations to text. YAML parses some values as other types, such as
// the boolean in "safe-to-evict: true".
func convertToText(raw map[string]any) {
	metadata, ok := raw["metadata"].(map[string]any)
	if !ok {
		return
	}
	for _, field := range []string{"labels", "annotations"} {
		values, _ := metadata[field].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(values)) {
			switch v := values[name].(type) {
			case bool, float64, int64:
				text, err := json.Marshal(v)
				if err == nil {
					values[name] = string(text)
				}
			}
		}
	}
}

// isSet reports whether the field at a path is present, even if its value is null.
func isSet(raw map[string]any, path ...string) bool {
	for _, field := range path[:len(path)-1] {
		raw, _ = raw[field].(map[string]any)
	}
	_, ok := raw[path[len(path)-1]]
	return ok
}

// missingKey returns the error for a template's ConfigMap without the key "template".
func missingKey(data map[string]string) error {
	return fmt.Errorf("%s: the ConfigMap has no such key: it must contain a v1 Pod (keys found: %s)",
		podKey, joinOrNone(slices.Sorted(maps.Keys(data))))
}

// checkPod returns an error if a user's pod lacks a part that every template requires, such as the function container.
func checkPod(pod *corev1.Pod) error {
	i := functionIndex(pod)
	if i < 0 {
		return fmt.Errorf("%s: no container is named %q: give the function's container this name (containers found: %s)",
			podKey, ContainerName, joinOrNone(containerNames(pod.Spec.Containers)))
	}
	var problems []error
	if len(pod.Spec.Containers[i].Command) == 0 {
		problems = append(problems, fmt.Errorf(
			"%s: container %q has no command: it must start the wrapper server, such as [%s/wrapper-server]",
			podKey, ContainerName, toolsPath))
	}
	seen := map[string]bool{}
	for _, c := range allContainers(pod) {
		if seen[c.Name] {
			problems = append(problems, fmt.Errorf(
				"%s: two containers are named %q: each needs a name of its own", podKey, c.Name))
		}
		seen[c.Name] = true
		problems = append(problems, checkMounts(pod, c)...)
	}
	return errors.Join(problems...)
}

// checkMounts returns an error for each mount whose volume is missing in the pod.
func checkMounts(pod *corev1.Pod, c *corev1.Container) []error {
	var problems []error
	for _, mount := range c.VolumeMounts {
		if !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name }) {
			problems = append(problems, fmt.Errorf(
				"%s: container %q mounts volume %q, which is not among the pod's volumes", podKey, c.Name, mount.Name))
		}
	}
	return problems
}

// checkService returns an error if a user's Service lacks the port at which callers reach function pods.
func checkService(service *corev1.Service) error {
	var ports []string
	for _, port := range service.Spec.Ports {
		if port.Port == Port {
			return nil
		}
		ports = append(ports, strconv.Itoa(int(port.Port)))
	}
	return fmt.Errorf("%s: it must have port %d, where function pods are called (ports found: %s)",
		serviceKey, Port, joinOrNone(ports))
}

// functionIndex returns the index of the function container, or -1 if the pod has none.
func functionIndex(pod *corev1.Pod) int {
	return slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == ContainerName })
}

// allContainers returns the pod's init containers, followed by its other containers.
func allContainers(pod *corev1.Pod) []*corev1.Container {
	var all []*corev1.Container
	for i := range pod.Spec.InitContainers {
		all = append(all, &pod.Spec.InitContainers[i])
	}
	for i := range pod.Spec.Containers {
		all = append(all, &pod.Spec.Containers[i])
	}
	return all
}

func containerNames(containers []corev1.Container) []string {
	var all []string
	for _, c := range containers {
		all = append(all, c.Name)
	}
	return all
}

func joinOrNone(texts []string) string {
	if len(texts) == 0 {
		return "none"
	}
	return strings.Join(texts, ", ")
}
