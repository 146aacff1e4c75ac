// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Launcher is how the wrapper server gets into pods of the built-in template.
type Launcher string

const (
	// InitContainer copies it from its image into a volume.
	InitContainer Launcher = "init-container"
	// ImageVolume mounts its image. It takes Kubernetes 1.35 and a container runtime
	// that can.
	ImageVolume Launcher = "image-volume"
)

// Defaults are what pods get for what their template leaves out.
type Defaults struct {
	// WrapperImage is the image that brings the wrapper server.
	WrapperImage string
	// Launcher is for the built-in template only; empty means InitContainer.
	Launcher Launcher
	// TerminationGracePeriod is how long a pod that is being deleted may finish its
	// evaluations: the longest one, and some 10 seconds more. Zero leaves it to
	// Kubernetes.
	TerminationGracePeriod time.Duration
}

// Template is what pods and their Services are made from. It never changes and may
// be shared. The zero Template cannot be used: get one from [Default] or [Parse].
type Template struct {
	version string
	// content is a hash of its text and of what was filled in.
	content string
	// The function container is the pod's first one.
	pod     *corev1.Pod
	service *corev1.Service
	// bare is the pod before defaults filled its gaps.
	bare     *corev1.Pod
	defaults Defaults
}

// newTemplate returns the template of a pod whose gaps are filled by defaults, and warnings.
// The caller sets its version.
func newTemplate(pod *corev1.Pod, service *corev1.Service, d Defaults) (Template, []string) {
	t := Template{pod: pod.DeepCopy(), service: service, bare: pod, defaults: d}
	warnings := fill(t.pod, d)
	t.content = contentHash(t.pod, service)
	return t, warnings
}

// podWith returns a pod with a function's overrides. Defaults fill only what neither the
// template nor the overrides say.
func (t Template) podWith(o *Overrides) *corev1.Pod {
	if o == nil {
		return t.pod.DeepCopy()
	}
	pod := t.bare.DeepCopy()
	o.apply(&pod.Spec)
	fill(pod, t.defaults)
	return pod
}

// Version identifies the template: pods of another version are to be replaced.
func (t Template) Version() string { return t.version }

// CountAs returns the template with the version of another one: whichever of the two is
// in force, pods of either may stay.
func (t Template) CountAs(other Template) Template {
	t.version, t.content = other.version, other.content
	return t
}

// Keys of a ConfigMap with templates.
const (
	podKey     = "template"
	serviceKey = "serviceTemplate"
)

// Parse returns the template that the data of a ConfigMap describes: the v1 Pod
// under "template" and, if there is one, the v1 Service under "serviceTemplate". The
// version is the ConfigMap's resourceVersion. What the pod leaves out is filled in,
// see [Defaults] and the hardening in this package; what it sets stays.
//
// The warnings are sentences for users: about what is ignored, and about what may not
// work. An error has all problems, and what to change.
func Parse(version string, data map[string]string, d Defaults) (Template, []string, error) {
	text, ok := data[podKey]
	if !ok {
		return Template{}, nil, missingKey(data)
	}
	pod, warnings, err := readYAML(podKey, text, "Pod")
	var service map[string]any
	if text, ok := data[serviceKey]; ok {
		read, further, serviceErr := readYAML(serviceKey, text, "Service")
		service, warnings, err = read, append(warnings, further...), errors.Join(err, serviceErr)
	}
	if err != nil {
		return Template{}, nil, err
	}
	t, further, err := assemble(pod, service, d, func(*corev1.PodSpec) {})
	t.version = version
	return t, append(warnings, further...), err
}

// assemble returns the template of a v1 Pod and a v1 Service as users wrote them; nil means the built-in one. prepare
// changes the user's pod before defaults fill its gaps.
func assemble(
	rawPod, rawService map[string]any, d Defaults, prepare func(*corev1.PodSpec),
) (Template, []string, error) {
	pod, podWarnings, err := userPod(rawPod, d, prepare)
	service, serviceWarnings, serviceErr := userService(rawService)
	if err := errors.Join(err, serviceErr); err != nil {
		return Template{}, nil, err
	}
	t, filled := newTemplate(pod, service, d)
	return t, slices.Concat(podWarnings, filled, serviceWarnings), nil
}

// userPod returns a user's pod, checked.
func userPod(raw map[string]any, d Defaults, prepare func(*corev1.PodSpec)) (*corev1.Pod, []string, error) {
	if raw == nil {
		return builtinPod(d), nil, nil
	}
	pod := new(corev1.Pod)
	warnings, err := decode(podKey, "Pod", raw, pod)
	if err == nil {
		err = checkPod(pod)
	}
	if err != nil {
		return nil, nil, err
	}
	prepare(&pod.Spec)
	protectTools(pod, raw)
	functionFirst(pod)
	return pod, warnings, nil
}

// userService returns a user's Service, checked and filled in.
func userService(raw map[string]any) (*corev1.Service, []string, error) {
	if raw == nil {
		return builtinService(), nil, nil
	}
	service := new(corev1.Service)
	warnings, err := decode(serviceKey, "Service", raw, service)
	if err != nil {
		return nil, nil, err
	}
	return service, warnings, completeService(service, raw)
}

// completeService checks a Service and adds what it leaves out. As it was written, it is raw.
func completeService(service *corev1.Service, raw map[string]any) error {
	if len(service.Spec.Ports) == 0 {
		service.Spec.Ports = builtinService().Spec.Ports
	}
	// The pod-manager asks the wrapper server itself: waiting for a probe's period on top
	// would only take time.
	if !isSet(raw, "spec", "publishNotReadyAddresses") {
		service.Spec.PublishNotReadyAddresses = true
	}
	return checkService(service)
}

// functionFirst makes the function container the pod's first one. The others keep
// their order.
func functionFirst(pod *corev1.Pod) {
	i := functionIndex(pod)
	ordered := append([]corev1.Container{pod.Spec.Containers[i]}, pod.Spec.Containers[:i]...)
	pod.Spec.Containers = append(ordered, pod.Spec.Containers[i+1:]...)
}
