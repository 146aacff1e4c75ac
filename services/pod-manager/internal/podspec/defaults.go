// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// nonRoot is the user for images without a numeric user.
const nonRoot int64 = 65532

// fill adds defaults for the gaps of a pod's template, and returns warnings. The result satisfies Pod Security's
// level "restricted" unless the template contradicts it.
//
// Only containers with a known image get hardening that can break an image: the function container, which reads and
// writes pipes, and containers with the wrapper server's image, which needs no rights. Other containers, such as an
// init container with another image, may require root: fill leaves them unchanged, with a warning, because a
// namespace that enforces "restricted" rejects them.
func fill(pod *corev1.Pod, d Defaults) []string {
	fillPod(&pod.Spec, d)
	var warnings []string
	for _, c := range allContainers(pod) {
		if c.TerminationMessagePolicy == "" {
			// The last lines of a crash become part of the pod's status.
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

// unusedVariables returns warnings about variables that look like settings of the wrapper server.
func unusedVariables(c *corev1.Container) (warnings []string) {
	for _, v := range c.Env {
		if strings.HasPrefix(v.Name, "FNR_") {
			warnings = append(warnings, fmt.Sprintf("%s: container %q sets %s, which has no effect: the wrapper server "+
				"takes its settings as arguments only, which the template can have", podKey, c.Name, v.Name))
		}
	}
	return warnings
}

// fillPod adds the defaults of the whole pod.
func fillPod(spec *corev1.PodSpec, d Defaults) {
	if spec.AutomountServiceAccountToken == nil && spec.ServiceAccountName == "" {
		// A template that names an account needs its rights.
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
		// A pod that ended has the reason in its status at once, and the pool replaces
		// it. A restart in its place would hide the crash, lose the evaluations all the
		// same, and make callers wait for the kubelet's backoff.
		spec.RestartPolicy = corev1.RestartPolicyNever
	}
	if spec.TerminationGracePeriodSeconds == nil && d.TerminationGracePeriod > 0 {
		spec.TerminationGracePeriodSeconds = new(int64((d.TerminationGracePeriod + time.Second - 1) / time.Second))
	}
}

// isPrivileged reports whether a container is privileged.
func isPrivileged(sc *corev1.SecurityContext) bool { return sc.Privileged != nil && *sc.Privileged }

// restrictRights removes the rights that a container does not request.
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
	// Kubernetes rejects this one together with CAP_SYS_ADMIN.
	admin := slices.Contains(sc.Capabilities.Add, "CAP_SYS_ADMIN") || slices.Contains(sc.Capabilities.Add, "SYS_ADMIN")
	if sc.AllowPrivilegeEscalation == nil && !admin {
		sc.AllowPrivilegeEscalation = new(false)
	}
}

// annotationSCC names the security context constraint of OpenShift for a pod. Constraints assign users.
const annotationSCC = "openshift.io/required-scc"

// fillUser sets a user other than root, unless the container's template requests root or leaves the user to
// OpenShift. It keeps the image's user if it is a number: the kubelet cannot determine whether a name belongs to
// root.
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
	if notRoot != nil && !*notRoot || user != nil && *user == 0 {
		return
	}
	if notRoot == nil {
		sc.RunAsNonRoot = new(true)
	}
	if user == nil && !isNumericUser(imageUser) {
		sc.RunAsUser = new(nonRoot)
	}
}

// isNumericUser reports whether an image's user is a number other than root's.
func isNumericUser(user string) bool {
	id, _, _ := strings.Cut(user, ":")
	n, err := strconv.ParseInt(id, 10, 64)
	return err == nil && n > 0
}

// fillResources adds resources to a container without resources: a default limit might contradict the template's own
// request. Ephemeral storage is added separately, because templates rarely set it, and a function that fills the
// node's disk ends all pods of the node.
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

// addResource adds a resource to a list if the defaults contain it.
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

// fillPullPolicy makes nodes use a cached image if the image is pinned by digest or tag. Without this, Kubernetes
// would query the registry at each start of a pod with the tag "latest", even with a digest. Images that may change,
// with that tag alone or without a tag, keep Kubernetes' default.
func fillPullPolicy(policy *corev1.PullPolicy, image string) {
	name, _, pinned := strings.Cut(image, "@")
	tag := strings.TrimPrefix(name, repositoryOf(name))
	if *policy == "" && (pinned || tag != "" && tag != ":latest") {
		*policy = corev1.PullIfNotPresent
	}
}

// repositoryOf returns an image's name without tag and digest.
func repositoryOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if i := strings.LastIndexByte(image, ':'); i > strings.LastIndexByte(image, '/') {
		image = image[:i]
	}
	return image
}
