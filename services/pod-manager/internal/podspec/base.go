// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// baseVersion is the prefix of versions of templates in Porch's objects.
const baseVersion = "base-"

// ParseBase returns the template in Porch's objects, a PodTemplate and a ServiceTemplate of the Kubernetes API. If an
// object is nil, the built-in object replaces it. The first init container gets the wrapper server's image. The
// version is a hash of the template's content, so that other changes of the objects have no effect.
//
// Warnings and errors are like [Parse]'s.
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

// templateOf returns the field template of an object, or nil if there is no object. The key names the object in
// errors.
func templateOf(object map[string]any, key string) (map[string]any, error) {
	raw, ok := object["template"].(map[string]any)
	if !ok && object != nil {
		return nil, fmt.Errorf("%s: the object has no field template with metadata and spec", key)
	}
	return raw, nil
}

// unsetDefaults removes the API's defaults from a PodTemplate, so that [Defaults] fill its gaps. A value of the
// author that equals the API's default cannot be distinguished, and is removed too.
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

// pullPolicy returns the pull policy of a container whose image will be replaced. It removes the policy that the API
// derived from the former image.
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
