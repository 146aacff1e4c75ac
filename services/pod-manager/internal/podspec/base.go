// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
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
	pod, err := templateOf(podTemplate, podKey)
	service, serviceErr := templateOf(serviceTemplate, serviceKey)
	if err := errors.Join(err, serviceErr); err != nil {
		return Template{}, nil, err
	}
	t, warnings, err := assemble(pod, service, d, func(spec *corev1.PodSpec) {
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

// templateOf returns the field template of an object; nil if there is no object. For users its name is key.
func templateOf(object map[string]any, key string) (map[string]any, error) {
	raw, ok := object["template"].(map[string]any)
	if !ok && object != nil {
		return nil, fmt.Errorf("%s: the object has no field template with metadata and spec", key)
	}
	return raw, nil
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
