// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/krm-function-runner/function-runner/libs/imagename"
)

// nonRoot is the user ID of containers whose image does not set a numeric user.
const nonRoot int64 = 65532

// fillDefaults adds defaults to unset fields of a template's pod, to satisfy the Pod Security level "restricted". It
// restricts the function container, which only uses pipes, and containers with the wrapper server's image, because both
// require no rights. Other containers may require root. They cause a warning if they have no securityContext, because
// namespaces that enforce "restricted" reject them.
func fillDefaults(pod *corev1.Pod, d Defaults) []string {
	fillPod(&pod.Spec, d)
	var warnings []string
	for _, c := range allContainers(pod) {
		if c.TerminationMessagePolicy == "" {
			// With this policy, the last log lines of a crashed container become part of the pod's status.
			c.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
		}
		switch {
		case c.Name == ContainerName:
			restrictRights(c)
			readOnlyRoot(c)
			fillTmp(pod, c)
			fillResources(c, builtin.pod.Spec.Containers[0].Resources)
			warnings = append(warnings, unusedVariables(c)...)
		case d.WrapperImage != "" && repositoryOf(c.Image) == repositoryOf(d.WrapperImage):
			restrictRights(c)
			readOnlyRoot(c)
			fillUser(c, pod, "")
			fillResources(c, builtin.pod.Spec.Containers[0].Resources)
			fillPullPolicy(&c.ImagePullPolicy, c.Image)
		case c.SecurityContext == nil:
			warnings = append(warnings, fmt.Sprintf("%s: container %q (%s) has no securityContext, and it is not known "+
				"which one it works with: a namespace that enforces Pod Security \"restricted\" refuses it",
				podKey, c.Name, c.Image))
		}
	}
	return warnings
}

// unusedVariables returns warnings about a container's variables with the prefix FNR_. Users may expect that they
// configure the wrapper server, but it reads its settings only from arguments.
func unusedVariables(c *corev1.Container) (warnings []string) {
	for _, v := range c.Env {
		if strings.HasPrefix(v.Name, "FNR_") {
			warnings = append(warnings, fmt.Sprintf("%s: container %q sets %s, which has no effect: the wrapper server "+
				"takes its settings as arguments only, which the template can have", podKey, c.Name, v.Name))
		}
	}
	return warnings
}

// fillPod adds defaults to the fields of the pod itself, not of its containers.
func fillPod(spec *corev1.PodSpec, d Defaults) {
	if spec.AutomountServiceAccountToken == nil && spec.ServiceAccountName == "" {
		// Mount no service account token by default. Only pods with a service account from the template need a token.
		spec.AutomountServiceAccountToken = new(false)
	}
	if spec.EnableServiceLinks == nil {
		spec.EnableServiceLinks = new(false)
	}
	if spec.SecurityContext == nil {
		spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	if spec.SecurityContext.SeccompProfile == nil {
		spec.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	}
	if spec.RestartPolicy == "" {
		// Never let the kubelet restart the function container after a crash. The pod's status then contains the reason at
		// once, and the pool replaces the pod. A restart would hide the crash and still lose the evaluations, and callers
		// would wait for the kubelet's backoff.
		spec.RestartPolicy = corev1.RestartPolicyNever
	}
	if spec.TerminationGracePeriodSeconds == nil && d.TerminationGracePeriod > 0 {
		spec.TerminationGracePeriodSeconds = new(int64((d.TerminationGracePeriod + time.Second - 1) / time.Second))
	}
}

func isPrivileged(sc *corev1.SecurityContext) bool { return sc.Privileged != nil && *sc.Privileged }

// restrictRights removes rights from a container, unless the template grants them explicitly.
func restrictRights(c *corev1.Container) {
	if c.SecurityContext == nil {
		c.SecurityContext = &corev1.SecurityContext{}
	}
	sc := c.SecurityContext
	if isPrivileged(sc) {
		return
	}
	if sc.Capabilities == nil {
		sc.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
	}
	// Kubernetes rejects allowPrivilegeEscalation: false together with CAP_SYS_ADMIN.
	admin := slices.Contains(sc.Capabilities.Add, "CAP_SYS_ADMIN") || slices.Contains(sc.Capabilities.Add, "SYS_ADMIN")
	if sc.AllowPrivilegeEscalation == nil && !admin {
		sc.AllowPrivilegeEscalation = new(false)
	}
}

// annotationSCC is the annotation with the pod's security context constraint, from which OpenShift assigns the pod's
// user.
const annotationSCC = "openshift.io/required-scc"

// fillUser makes a container run as a user other than root, unless the template requests root or OpenShift assigns the
// user. If the image's user is a number, fillUser keeps this user. If it is a name, fillUser replaces it, because the
// kubelet cannot determine if the name belongs to root.
func fillUser(c *corev1.Container, pod *corev1.Pod, imageUser string) {
	spec, sc := &pod.Spec, c.SecurityContext
	if _, assigned := pod.Annotations[annotationSCC]; assigned || isPrivileged(sc) {
		return
	}
	user, notRoot := spec.SecurityContext.RunAsUser, spec.SecurityContext.RunAsNonRoot
	if sc.RunAsUser != nil {
		user = sc.RunAsUser
	}
	if sc.RunAsNonRoot != nil {
		notRoot = sc.RunAsNonRoot
	}
	if (notRoot != nil && !*notRoot) || (user != nil && *user == 0) {
		return
	}
	if notRoot == nil {
		sc.RunAsNonRoot = new(true)
	}
	if user == nil && !isNumericUser(imageUser) {
		sc.RunAsUser = new(nonRoot)
	}
}

// isNumericUser reports whether an image's user is a number other than 0, which is root.
func isNumericUser(user string) bool {
	id, _, _ := strings.Cut(user, ":")
	n, err := strconv.ParseInt(id, 10, 64)
	return err == nil && n > 0
}

// fillResources adds the default resources to a container without any resources. If the template sets some resources,
// no other defaults are added, because a default limit might be below the template's request. Only ephemeral storage
// always gets its default, because templates rarely set it. Without this limit, a function that fills the node's disk
// would end all pods of the node.
func fillResources(c *corev1.Container, defaults corev1.ResourceRequirements) {
	r := &c.Resources
	if len(r.Requests) == 0 && len(r.Limits) == 0 && len(r.Claims) == 0 {
		*r = *defaults.DeepCopy()
	}
	const storage = corev1.ResourceEphemeralStorage
	_, requested := r.Requests[storage]
	_, limited := r.Limits[storage]
	if !requested && !limited {
		addResource(&r.Requests, storage, defaults.Requests)
		addResource(&r.Limits, storage, defaults.Limits)
	}
}

// addResource adds the default amount of a resource to a list, if there is a default.
func addResource(to *corev1.ResourceList, name corev1.ResourceName, defaults corev1.ResourceList) {
	amount, ok := defaults[name]
	if !ok {
		return
	}
	if *to == nil {
		*to = corev1.ResourceList{}
	}
	(*to)[name] = amount.DeepCopy()
}

// fillPullPolicy lets nodes use a cached image that has a digest, or a tag other than "latest". By default, Kubernetes
// queries the registry at each start of a pod with the tag "latest", even if the image also has a digest. This default
// remains for images without a digest whose tag is "latest" or missing, because they may change.
func fillPullPolicy(policy *corev1.PullPolicy, image string) {
	name, _, pinned := strings.Cut(image, "@")
	tag := strings.TrimPrefix(name, repositoryOf(name))
	if *policy == "" && (pinned || (tag != "" && tag != ":latest")) {
		*policy = corev1.PullIfNotPresent
	}
}

// repositoryOf returns an image's name without tag and digest.
func repositoryOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	repository, _ := imagename.SplitTag(image)
	return repository
}

const (
	// tmpVolume is the name of the only volume to which functions can write. It is mounted at tmpPath.
	tmpVolume = "function-tmp"
	tmpPath   = "/tmp"
)

// readOnlyRoot makes a container's root file system read-only. It does nothing if the template sets
// readOnlyRootFilesystem or makes the container privileged.
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
// access could replace the server. If the template sets readOnly explicitly, the template takes precedence.
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

// rawMount returns the mount of the wrapper server's volume in the function container, as written in the template. It
// is nil if there is no such mount.
func rawMount(raw map[string]any) map[string]any {
	spec, _ := raw["spec"].(map[string]any)
	return objectNamed(objectNamed(spec, "containers", ContainerName), "volumeMounts", toolsVolume)
}

// objectNamed returns the entry with the given name in a list field of an object, or nil if there is no such entry.
func objectNamed(object map[string]any, list, name string) map[string]any {
	items, _ := object[list].([]any)
	for _, item := range items {
		if o, _ := item.(map[string]any); o["name"] == name {
			return o
		}
	}
	return nil
}
