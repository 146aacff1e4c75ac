// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"
)

// baseVersion is how versions of templates in Porch's objects begin.
const baseVersion = "base-"

// ParseBase returns the template that Porch's objects describe: a PodTemplate and a
// ServiceTemplate, as the Kubernetes API has them. Either may be nil: the built-in one is in its
// place. The first init container gets the wrapper server's image. The version is a hash of what
// the template says, so that changes beside it are none.
//
// Warnings and errors are those of [Parse].
func ParseBase(podTemplate, serviceTemplate map[string]any, d Defaults) (Template, []string, error) {
	pod, podWarnings, err := basePod(podTemplate, d)
	service, serviceWarnings, serviceErr := baseService(serviceTemplate)
	if err := errors.Join(err, serviceErr); err != nil {
		return Template{}, nil, err
	}
	t, filled := newTemplate(pod, service, d)
	t.version = baseVersion + t.content
	if podTemplate == nil {
		t.version = builtinVersion + t.content
	}
	return t, append(append(podWarnings, filled...), serviceWarnings...), nil
}

// basePod returns the pod of a PodTemplate, checked.
func basePod(podTemplate map[string]any, d Defaults) (*corev1.Pod, []string, error) {
	if podTemplate == nil {
		return builtinPod(d), nil, nil
	}
	pod := new(corev1.Pod)
	raw, warnings, err := decodeBase(podTemplate, podKey, pod)
	if err != nil {
		return nil, nil, err
	}
	if err := checkPod(pod); err != nil {
		return nil, nil, err
	}
	unsetDefaults(&pod.Spec)
	if len(pod.Spec.InitContainers) > 0 && d.WrapperImage != "" {
		pod.Spec.InitContainers[0].Image = d.WrapperImage
	}
	protectTools(pod, raw)
	functionFirst(pod)
	return pod, warnings, nil
}

// baseService returns the Service of a ServiceTemplate, checked.
func baseService(serviceTemplate map[string]any) (*corev1.Service, []string, error) {
	if serviceTemplate == nil {
		return builtinService(), nil, nil
	}
	service := new(corev1.Service)
	raw, warnings, err := decodeBase(serviceTemplate, serviceKey, service)
	if err != nil {
		return nil, nil, err
	}
	return service, warnings, completeService(service, raw)
}

// decodeBase reads the field template of an object into a v1 object, and returns it as it was
// written too. For users its name is key.
func decodeBase(object map[string]any, key string, into any) (map[string]any, []string, error) {
	raw, ok := object["template"].(map[string]any)
	if !ok {
		return nil, nil, fmt.Errorf("%s: the object has no field template with metadata and spec", key)
	}
	content, err := json.Marshal(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", key, err)
	}
	strict, err := kjson.UnmarshalStrict(content, into)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %s", key, strings.TrimPrefix(err.Error(), "json: "))
	}
	var warnings []string
	for _, problem := range strict {
		warnings = append(warnings, fmt.Sprintf("%s: %v is ignored", key, problem))
	}
	return raw, warnings, nil
}

// unsetDefaults takes out what the Kubernetes API fills into each PodTemplate: what its author
// left out is for [Defaults], as in other templates. A value that an author set and that equals
// the API's cannot be distinguished: it counts as left out too.
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

// pullPolicy returns the pull policy of a container whose image is going to be replaced: the
// API derived its own from the image before.
func pullPolicy(c *corev1.Container) corev1.PullPolicy {
	tag := strings.TrimPrefix(c.Image, repository(c.Image))
	derived := corev1.PullIfNotPresent
	if tag == "" || tag == ":latest" {
		derived = corev1.PullAlways
	}
	if c.ImagePullPolicy == derived {
		return ""
	}
	return c.ImagePullPolicy
}
