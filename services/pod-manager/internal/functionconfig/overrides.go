// SPDX-License-Identifier: Apache-2.0

package functionconfig

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// readOverrides returns the field templateOverrides, which replaces values of the pod template, or nil if empty.
func readOverrides(o object, secrets []string) *podspec.Overrides {
	if len(o.fields) == 0 {
		return nil
	}
	all := &podspec.Overrides{ServiceAccount: o.text("serviceAccountName")}
	if all.ServiceAccount != "" && len(validation.IsDNS1123Subdomain(all.ServiceAccount)) > 0 {
		o.addInvalid("serviceAccountName", all.ServiceAccount, "the name of a ServiceAccount")
	}
	var context corev1.PodSecurityContext
	if o.decode("securityContext", &context, "a pod's security context") {
		all.SecurityContext = &context
	}
	all.Init = readContainer(o.object("initContainer"), secrets)
	all.Function = readContainer(o.object("container"), secrets)
	return all
}

func readContainer(o object, secrets []string) podspec.ContainerOverrides {
	var c podspec.ContainerOverrides
	amounts := o.object("resources")
	amounts.decode("requests", &c.Requests, "quantities, such as {cpu: 100m}")
	amounts.decode("limits", &c.Limits, "quantities, such as {memory: 1Gi}")
	for _, problem := range podspec.CheckResources(c.Requests, c.Limits) {
		o.problems.add("%s: %v", o.pathOf("resources"), problem)
	}
	o.decode("envFrom", &c.EnvFrom, "a list of sources of a container's variables")
	if o.decode("env", &c.Env, "a list of a container's variables") {
		checkEnv(o, c.Env)
	}
	for _, secret := range secretsOf(c) {
		if slices.Contains(secrets, secret) {
			o.problems.add("%s names the Secret %q: its key would let functions pose as our programs", o.path, secret)
		}
	}
	return c
}

// secretsOf returns the names of the Secrets that a container's envFrom and env refer to.
func secretsOf(c podspec.ContainerOverrides) []string {
	var names []string
	for _, source := range c.EnvFrom {
		if source.SecretRef != nil {
			names = append(names, source.SecretRef.Name)
		}
	}
	for _, variable := range c.Env {
		if variable.ValueFrom != nil && variable.ValueFrom.SecretKeyRef != nil {
			names = append(names, variable.ValueFrom.SecretKeyRef.Name)
		}
	}
	return names
}

// checkEnv adds problems for environment variables that Kubernetes would reject in each pod.
func checkEnv(o object, env []corev1.EnvVar) {
	for i, variable := range env {
		switch {
		case variable.Name == "" || strings.ContainsAny(variable.Name, "=\x00"):
			o.problems.add("%s[%d] has the name %s: it must be the name of a variable",
				o.pathOf("env"), i, formatValue(variable.Name))
		case variable.Value != "" && variable.ValueFrom != nil:
			o.problems.add("%s[%d] has both value and valueFrom: it must have only one of them", o.pathOf("env"), i)
		}
	}
}
