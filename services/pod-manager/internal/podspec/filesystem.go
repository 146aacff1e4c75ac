// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

const (
	// tmpVolume and tmpPath are the writable directory of functions. All other files are read-only.
	tmpVolume = "function-tmp"
	tmpPath   = "/tmp"
)

// readOnlyRoot makes a container's root file system read-only unless its template says otherwise.
func readOnlyRoot(c *corev1.Container) {
	sc := c.SecurityContext
	if sc.ReadOnlyRootFilesystem == nil && !isPrivileged(sc) {
		sc.ReadOnlyRootFilesystem = new(true)
	}
}

// fillTmp mounts a /tmp of bounded size in the function container if its own /tmp is read-only and the template
// mounts nothing there.
func fillTmp(pod *corev1.Pod, c *corev1.Container) {
	if readOnly := c.SecurityContext.ReadOnlyRootFilesystem; readOnly == nil || !*readOnly {
		return
	}
	if slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == tmpPath }) {
		return
	}
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: tmpVolume, MountPath: tmpPath})
	isTmp := func(v corev1.Volume) bool { return v.Name == tmpVolume }
	if slices.ContainsFunc(pod.Spec.Volumes, isTmp) {
		return
	}
	volumes := builtin.pod.Spec.Volumes
	pod.Spec.Volumes = append(pod.Spec.Volumes, *volumes[slices.IndexFunc(volumes, isTmp)].DeepCopy())
}

// protectTools mounts the wrapper server's directory read-only in the function container: a function with write
// access could replace the server. It keeps an explicit readOnly of the template.
func protectTools(pod *corev1.Pod, raw map[string]any) {
	c := &pod.Spec.Containers[functionIndex(pod)]
	if mount := rawMount(raw); mount == nil || isSet(mount, "readOnly") {
		return
	}
	for i := range c.VolumeMounts {
		if c.VolumeMounts[i].Name == toolsVolume {
			c.VolumeMounts[i].ReadOnly = true
		}
	}
}

// rawMount returns the template's mount of the wrapper server's directory in the function container, or nil.
func rawMount(raw map[string]any) map[string]any {
	spec, _ := raw["spec"].(map[string]any)
	return objectNamed(objectNamed(spec, "containers", ContainerName), "volumeMounts", toolsVolume)
}

// objectNamed returns the object of a name in a list, or nil.
func objectNamed(object map[string]any, list, name string) map[string]any {
	items, _ := object[list].([]any)
	for _, item := range items {
		if o, _ := item.(map[string]any); o["name"] == name {
			return o
		}
	}
	return nil
}
