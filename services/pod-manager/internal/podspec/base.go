// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// baseVersion is the prefix of the versions of templates from Porch's objects PodTemplate and ServiceTemplate.
const baseVersion = "base-"

// ParseBase returns the template of function pods from Porch's objects PodTemplate and ServiceTemplate. It uses the
// built-in pod or Service if an object is nil. The first init container gets the wrapper server's image. The
// version is a hash of the template's content, so that other changes of the objects, such as of their labels, do
// not make pods outdated. For the warnings and errors, see [Parse].
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

// templateOf returns the field "template" of an object. It is nil if the object is nil. key is the name of the
// object in errors.
func templateOf(object map[string]any, key string) (map[string]any, error) {
	raw, ok := object["template"].(map[string]any)
	if !ok && object != nil {
		return nil, fmt.Errorf("%s: the object has no field template with metadata and spec", key)
	}
	return raw, nil
}

// unsetDefaults removes values that equal the API server's defaults from the spec of a PodTemplate. The API server
// adds its defaults when it stores a PodTemplate, but these fields must get the values of [Defaults]. unsetDefaults
// also removes such values if a user wrote them, because they look the same.
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

// pullPolicy returns the pull policy of a container whose image will be replaced. It is empty if the API server has
// derived the policy from the present image, because the policy may not suit the new image.
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
