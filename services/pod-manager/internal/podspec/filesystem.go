// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

const (
	// tmpVolume is the volume of the only directory to which functions can write, and tmpPath is its mount path.
	tmpVolume = "function-tmp"
	tmpPath   = "/tmp"
)

// readOnlyRoot makes a container's root file system read-only, unless the template sets readOnlyRootFilesystem or
// makes the container privileged.
func readOnlyRoot(c *corev1.Container) {
	sc := c.SecurityContext
	if sc.ReadOnlyRootFilesystem == nil && !isPrivileged(sc) {
		sc.ReadOnlyRootFilesystem = new(true)
	}
}

// fillTmp mounts a volume of bounded size at /tmp in the function container, because functions may need a directory
// for temporary files. It does nothing if the root file system is writable or the template mounts a volume at /tmp.
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

// protectTools mounts the wrapper server's volume read-only in the function container, because a function with write
// access could replace the server. An explicit readOnly of the template takes precedence.
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

// rawMount returns the mount of the wrapper server's volume in the function container, as the template's author
// wrote it. It is nil if there is no such mount.
func rawMount(raw map[string]any) map[string]any {
	spec, _ := raw["spec"].(map[string]any)
	return objectNamed(objectNamed(spec, "containers", ContainerName), "volumeMounts", toolsVolume)
}

// objectNamed returns the object with the given name in the field list of object. It is nil if there is no such
// object.
func objectNamed(object map[string]any, list, name string) map[string]any {
	items, _ := object[list].([]any)
	for _, item := range items {
		if o, _ := item.(map[string]any); o["name"] == name {
			return o
		}
	}
	return nil
}
