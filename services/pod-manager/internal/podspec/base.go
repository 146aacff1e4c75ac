// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// baseVersion is the prefix of the versions of templates in Porch's objects.
const baseVersion = "base-"

// ParseBase returns the template in Porch's objects: a PodTemplate and a ServiceTemplate. If an object is nil, the
// built-in pod or Service is used instead. The first init container gets the wrapper server's image. The version is a
// hash of the template's content, so that changes elsewhere in the objects, such as of labels, do not make pods
// outdated.
//
// Warnings and errors are the same as for [Parse].
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

// templateOf returns the field "template" of an object. It is nil if the object is nil. Errors name the object by
// key.
func templateOf(object map[string]any, key string) (map[string]any, error) {
	raw, ok := object["template"].(map[string]any)
	if !ok && object != nil {
		return nil, fmt.Errorf("%s: the object has no field template with metadata and spec", key)
	}
	return raw, nil
}

// unsetDefaults removes values that equal the API server's defaults from the spec of a PodTemplate, because the API
// server has filled the gaps that [Defaults] should fill. It also removes such values if a user wrote them, because
// they look the same.
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

// pullPolicy returns the pull policy of a container whose image will be replaced. It is empty if the policy equals
// the policy that the API server derives from the present image.
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
