// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Launcher is the method of adding the wrapper server, which runs functions, to pods of the built-in template.
type Launcher string

const (
	// InitContainer is the launcher that uses an init container. It copies the wrapper server from its image to a volume.
	InitContainer Launcher = "init-container"
	// ImageVolume is the launcher that mounts the image of the wrapper server as a volume. It requires Kubernetes 1.35 and
	// a container runtime with support for image volumes.
	ImageVolume Launcher = "image-volume"
)

// Defaults contains values for fields that templates of function pods leave unset.
type Defaults struct {
	// WrapperImage is the image of the wrapper server.
	WrapperImage string
	// Launcher is the method of adding the wrapper server to pods of the built-in template. It has no effect on users'
	// templates. Empty means InitContainer.
	Launcher Launcher
	// TerminationGracePeriod is the time within which a deleted pod may complete its evaluations. It must be longer than
	// the time limit of an evaluation. If it is zero, the default of Kubernetes applies.
	TerminationGracePeriod time.Duration
}

// Template is the template of function pods and their Services. It is immutable and safe for concurrent use. The zero
// Template is unusable: use [Default] or [Parse].
type Template struct {
	version string
	// content is a hash of the template with its defaults. It is a part of [Builder.SettingsVersion].
	content string
	// pod is the pod with defaults. Its first container is the function container.
	pod     *corev1.Pod
	service *corev1.Service
	// bare is the pod without defaults, for functions with overrides. Overrides are applied to bare first. Defaults are
	// then added only to fields that are still unset.
	bare     *corev1.Pod
	defaults Defaults
}

// newTemplate adds defaults to a pod, and returns the template and warnings. The caller sets the template's version.
func newTemplate(pod *corev1.Pod, service *corev1.Service, d Defaults) (Template, []string) {
	t := Template{pod: pod.DeepCopy(), service: service, bare: pod, defaults: d}
	warnings := fillDefaults(t.pod, d)
	t.content = contentHash(t.pod, service)
	return t, warnings
}

// podWith returns the template's pod with a function's overrides. Fields that are still unset then get defaults.
func (t Template) podWith(o *Overrides) *corev1.Pod {
	if o == nil {
		return t.pod.DeepCopy()
	}
	pod := t.bare.DeepCopy()
	o.applyTo(&pod.Spec)
	fillDefaults(pod, t.defaults)
	return pod
}

// Version identifies the template. The pod-manager replaces pods of another version.
func (t Template) Version() string { return t.version }

// CountAs returns the template with the version of another template. Both templates then count as the same version. A
// switch between them therefore makes no pods outdated.
func (t Template) CountAs(other Template) Template {
	t.version = other.version
	t.content = other.content
	return t
}

// Keys of a ConfigMap with a template.
const (
	podKey     = "template"
	serviceKey = "serviceTemplate"
)

// Parse returns the template of function pods from the data of a ConfigMap. The key "template" contains a v1 Pod. The
// optional key "serviceTemplate" contains a v1 Service. version is the ConfigMap's resourceVersion. Fields that the pod
// leaves unset get safe defaults. Warnings are sentences for users about ignored fields and possible failures. An error
// lists all problems of the template, with remedies.
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
	t, further, err := assembleTemplate(pod, service, d, func(*corev1.PodSpec) {})
	t.version = version
	return t, append(warnings, further...), err
}

// assembleTemplate returns the template that consists of a user's v1 Pod and v1 Service. If rawPod or rawService is
// nil, it uses the built-in object. prepare changes the user's pod before defaults are added.
func assembleTemplate(
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

// userPod decodes and validates a user's pod, and then changes its spec with the callback prepare. If raw is nil, it
// returns the built-in pod, and does not call prepare.
func userPod(raw map[string]any, d Defaults, prepare func(*corev1.PodSpec)) (*corev1.Pod, []string, error) {
	if raw == nil {
		return builtinPod(d), nil, nil
	}
	pod := new(corev1.Pod)
	warnings, err := decodeObject(podKey, "Pod", raw, pod)
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

// userService decodes, validates and completes a user's Service. If raw is nil, it returns the built-in Service.
func userService(raw map[string]any) (*corev1.Service, []string, error) {
	if raw == nil {
		return builtinService(), nil, nil
	}
	service := new(corev1.Service)
	warnings, err := decodeObject(serviceKey, "Service", raw, service)
	if err != nil {
		return nil, nil, err
	}
	return service, warnings, completeService(service, raw)
}

// completeService adds defaults to a user's Service, and validates it. raw is the Service as the user wrote it.
func completeService(service *corev1.Service, raw map[string]any) error {
	if len(service.Spec.Ports) == 0 {
		service.Spec.Ports = builtinService().Spec.Ports
	}
	// Publish the pod's address before the pod is ready. The pod-manager checks the wrapper server's health itself, and
	// does not wait for a readiness probe of the kubelet.
	if !isSet(raw, "spec", "publishNotReadyAddresses") {
		service.Spec.PublishNotReadyAddresses = true
	}
	return checkService(service)
}

// functionFirst moves the function container to the start of the list. The other containers keep their order.
func functionFirst(pod *corev1.Pod) {
	i := functionIndex(pod)
	ordered := append([]corev1.Container{pod.Spec.Containers[i]}, pod.Spec.Containers[:i]...)
	pod.Spec.Containers = append(ordered, pod.Spec.Containers[i+1:]...)
}

// baseVersion is the prefix of the versions of templates from Porch's objects PodTemplate and ServiceTemplate.
const baseVersion = "base-"

// ParseBase returns the template of function pods from Porch's objects PodTemplate and ServiceTemplate. The built-in
// pod or Service replaces a nil object. The first init container gets the wrapper server's image. The version is a hash
// of the template's content. A change of the objects' own metadata, for example a label, therefore makes no pods
// outdated. Warnings and errors are the same as in [Parse].
func ParseBase(podTemplate, serviceTemplate map[string]any, d Defaults) (Template, []string, error) {
	pod, err := templateOf(podTemplate, podKey)
	service, serviceErr := templateOf(serviceTemplate, serviceKey)
	if err := errors.Join(err, serviceErr); err != nil {
		return Template{}, nil, err
	}
	t, warnings, err := assembleTemplate(pod, service, d, func(spec *corev1.PodSpec) {
		unsetDefaults(spec)
		if len(spec.InitContainers) > 0 && d.WrapperImage != "" {
			spec.InitContainers[0].Image = d.WrapperImage
		}
	})
	t.version = baseVersion + t.content
	if podTemplate == nil {
		t.version = builtinVersion + t.content
	}
	return t, warnings, err
}

// templateOf returns the field "template" of an object, or nil if the object is nil. The argument key names the object
// in error texts.
func templateOf(object map[string]any, key string) (map[string]any, error) {
	raw, ok := object["template"].(map[string]any)
	if !ok && object != nil {
		return nil, fmt.Errorf("%s: the object has no field template with metadata and spec", key)
	}
	return raw, nil
}

// unsetDefaults removes the API server's defaults from the spec of a PodTemplate. The API server added them when it
// stored the PodTemplate. The fields then get the values of [Defaults] instead. Equal values that a user wrote are also
// removed, because they cannot be distinguished.
func unsetDefaults(spec *corev1.PodSpec) {
	const gracePeriod = corev1.DefaultTerminationGracePeriodSeconds
	if spec.RestartPolicy == corev1.RestartPolicyAlways {
		spec.RestartPolicy = ""
	}
	if s := spec.TerminationGracePeriodSeconds; s != nil && *s == gracePeriod {
		spec.TerminationGracePeriodSeconds = nil
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			c := &containers[i]
			if c.TerminationMessagePolicy == corev1.TerminationMessageReadFile {
				c.TerminationMessagePolicy = ""
			}
			if c.Name == ContainerName || i == 0 {
				c.ImagePullPolicy = pullPolicy(c)
			}
		}
	}
}

// pullPolicy returns the pull policy of a container whose image will be replaced. It returns an empty policy if the
// present policy is the API server's default for the present image. The new image may have another default.
func pullPolicy(c *corev1.Container) corev1.PullPolicy {
	tag := strings.TrimPrefix(c.Image, repositoryOf(c.Image))
	derived := corev1.PullIfNotPresent
	if tag == "" || tag == ":latest" {
		derived = corev1.PullAlways
	}
	if c.ImagePullPolicy == derived {
		return ""
	}
	return c.ImagePullPolicy
}
