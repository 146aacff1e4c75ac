package podspec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// nonRoot is the user for images that do not name one by number.
const nonRoot int64 = 65532

// fill adds what a pod's template does not say, and returns warnings. The result
// passes Pod Security's level "restricted" unless the template says otherwise.
//
// Only containers whose image is known get the hardening that can break one: the
// function's, which reads and writes pipes and no more, and those of the wrapper
// server's image, which needs no rights. Others, such as an init container with
// somebody else's image, may have to be root: they are left as they are, with a
// warning, since a namespace that enforces "restricted" refuses them.
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
			restrict(c)
			fillResources(c, d.Resources)
		case d.WrapperImage != "" && repository(c.Image) == repository(d.WrapperImage):
			restrict(c)
			fillUser(c, &pod.Spec, "")
			fillResources(c, d.Resources)
			fillPullPolicy(&c.ImagePullPolicy, c.Image)
		case c.SecurityContext == nil:
			warnings = append(warnings, fmt.Sprintf("%s: container %q (%s) has no securityContext, and which one it can do with is not known: a namespace that enforces Pod Security \"restricted\" refuses it", podKey, c.Name, c.Image))
		}
	}
	return warnings
}

// fillPod adds what is the whole pod's.
func fillPod(spec *corev1.PodSpec, d Defaults) {
	if spec.AutomountServiceAccountToken == nil && spec.ServiceAccountName == "" {
		// A template that names an account wants what it may do.
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
		// A pod that ended says why in its status at once, and the pool replaces it.
		// A restart in its place would hide the crash, lose what was running all the
		// same, and make those who wait sit out the kubelet's back-off.
		spec.RestartPolicy = corev1.RestartPolicyNever
	}
	if spec.TerminationGracePeriodSeconds == nil && d.TerminationGracePeriod > 0 {
		spec.TerminationGracePeriodSeconds = new(int64((d.TerminationGracePeriod + time.Second - 1) / time.Second))
	}
}

// restrict takes from a container the rights that it does not ask for.
func restrict(c *corev1.Container) {
	if c.SecurityContext == nil {
		c.SecurityContext = &corev1.SecurityContext{}
	}
	sc := c.SecurityContext
	if sc.Privileged != nil && *sc.Privileged {
		return
	}
	if sc.Capabilities == nil {
		sc.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
	}
	// Kubernetes refuses this one together with CAP_SYS_ADMIN.
	if sc.AllowPrivilegeEscalation == nil && !slices.Contains(sc.Capabilities.Add, "CAP_SYS_ADMIN") && !slices.Contains(sc.Capabilities.Add, "SYS_ADMIN") {
		sc.AllowPrivilegeEscalation = new(false)
	}
}

// fillUser has a container run as somebody else than root, unless its template asks
// for root. The image's user counts if it is a number: the kubelet cannot find out
// whether a name is root's.
func fillUser(c *corev1.Container, spec *corev1.PodSpec, imageUser string) {
	sc := c.SecurityContext
	if sc.Privileged != nil && *sc.Privileged {
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
	if user == nil && !numeric(imageUser) {
		sc.RunAsUser = new(nonRoot)
	}
}

// numeric says whether an image's user is a number other than root's.
func numeric(user string) bool {
	id, _, _ := strings.Cut(user, ":")
	n, err := strconv.ParseInt(id, 10, 64)
	return err == nil && n > 0
}

// fillResources adds resources to a container that says nothing about them at all:
// a limit beside the template's own request might contradict it.
func fillResources(c *corev1.Container, defaults corev1.ResourceRequirements) {
	if len(c.Resources.Requests) == 0 && len(c.Resources.Limits) == 0 && len(c.Resources.Claims) == 0 {
		c.Resources = *defaults.DeepCopy()
	}
}

// fillPullPolicy has an image whose name says which one it is taken from the node, if it
// is there. Without this, Kubernetes would ask the registry at each start of a pod whose
// tag is "latest", digest or not. An image that may be another one each time, with that
// tag alone or without any, is left to Kubernetes.
func fillPullPolicy(policy *corev1.PullPolicy, image string) {
	name, _, pinned := strings.Cut(image, "@")
	tag := strings.TrimPrefix(name, repository(name))
	if *policy == "" && (pinned || tag != "" && tag != ":latest") {
		*policy = corev1.PullIfNotPresent
	}
}

// repository returns an image's name without tag and digest.
func repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if i := strings.LastIndexByte(image, ':'); i > strings.LastIndexByte(image, '/') {
		image = image[:i]
	}
	return image
}
