// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// missingKey returns the error for a template's ConfigMap without the key "template".
func missingKey(data map[string]string) error {
	return fmt.Errorf("%s: the ConfigMap has no such key: it must contain a v1 Pod (keys found: %s)",
		podKey, joinOrNone(slices.Sorted(maps.Keys(data))))
}

// checkPod returns an error if a user's pod lacks parts that every template requires, such as the function container.
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

// checkMounts returns errors for mounts of missing volumes.
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

// checkService returns an error if a user's Service lacks the port where callers reach function pods.
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

// functionIndex returns the index of the function container, or -1.
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
