// SPDX-License-Identifier: Apache-2.0

package podspec_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// overridable is a template with a value for everything that can be overridden.
const overridable = `apiVersion: v1
kind: Pod
spec:
  securityContext: {runAsUser: 1}
  initContainers:
  - {name: tools, image: example.com/wrapper:v1, env: [{name: I, value: template}]}
  containers:
  - name: function
    command: [/server]
    env: [{name: A, value: template}, {name: B, value: template}]
    resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {cpu: 200m, memory: 128Mi}}
`

// quantities returns resources of a container, given by name and quantity.
func quantities(pairs ...string) corev1.ResourceList {
	all := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		all[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return all
}

// podOf returns the pod of a template with overrides.
func podOf(t *testing.T, template podspec.Template, overrides *podspec.Overrides) *corev1.Pod {
	t.Helper()
	r := podspec.Request{Template: template, Workload: podspec.Workload{Overrides: overrides}}
	r.Function = podspec.Function{Reference: "example.com/fn:v1", Digest: "sha256:01", Command: []string{"/fn"}}
	return podspec.Builder{Namespace: "fns"}.Pod(r)
}

func TestOverrides(t *testing.T) {
	template, _, err := podspec.Parse("1", map[string]string{"template": overridable}, podspec.Defaults{
		WrapperImage: "example.com/wrapper:v1",
	})
	if err != nil {
		t.Fatal(err)
	}
	user := int64(1000)
	pod := podOf(t, template, &podspec.Overrides{
		ServiceAccount: "functions", SecurityContext: &corev1.PodSecurityContext{RunAsUser: &user},
		Init: podspec.ContainerOverrides{Env: []corev1.EnvVar{{Name: "I", Value: "own"}}},
		Function: podspec.ContainerOverrides{
			Requests: quantities("memory", "256Mi"), EnvFrom: []corev1.EnvFromSource{{Prefix: "P"}},
		},
	})
	spec, function := pod.Spec, pod.Spec.Containers[0]
	if spec.ServiceAccountName != "functions" || spec.AutomountServiceAccountToken != nil {
		t.Errorf("the account is %q, and its token %v", spec.ServiceAccountName, spec.AutomountServiceAccountToken)
	}
	if *spec.SecurityContext.RunAsUser != 1000 || spec.SecurityContext.SeccompProfile == nil {
		t.Errorf("the security context is %v: what it leaves out is filled", spec.SecurityContext)
	}
	want := corev1.ResourceRequirements{
		Requests: quantities("memory", "256Mi", "ephemeral-storage", "64Mi"),
		Limits:   quantities("cpu", "200m", "memory", "256Mi", "ephemeral-storage", "1Gi"),
	}
	if diff := cmp.Diff(want, function.Resources); diff != "" {
		t.Errorf("requests are replaced, and limits no lower than they (-want, +got):\n%s", diff)
	}
	if len(function.EnvFrom) != 1 || function.Env[0].Value != "template" || function.Env[1].Value != "template" {
		t.Errorf("variables are %v and %v: what is not overridden stays", function.Env, function.EnvFrom)
	}
	if env := spec.InitContainers[0].Env; len(env) != 1 || env[0].Value != "own" {
		t.Errorf("variables of the init container are %v", env)
	}
	if again := podOf(t, template, nil); *again.Spec.SecurityContext.RunAsUser != 1 ||
		len(again.Spec.Containers[0].EnvFrom) > 0 {
		t.Error("the template has changed")
	}
}

// TestNoOverridesAreTheTemplate has the built-in template, whose gaps were filled once already.
func TestNoOverridesAreTheTemplate(t *testing.T) {
	template := podspec.Default(podspec.Defaults{WrapperImage: "example.com/wrapper:v1"})
	if diff := cmp.Diff(podOf(t, template, nil), podOf(t, template, &podspec.Overrides{}), cmp.FilterPath(
		func(p cmp.Path) bool { return p.String() == "ObjectMeta.Annotations" }, cmp.Ignore())); diff != "" {
		t.Errorf("overrides without any (-without, +with):\n%s", diff)
	}
}

func TestOverridesMakePodsOutdated(t *testing.T) {
	b := podspec.Builder{}
	version := func(o *podspec.Overrides) string {
		r := podspec.Request{Template: podspec.Default(podspec.Defaults{})}
		r.Overrides = o
		return b.SettingsVersion(r)
	}
	seen := map[string]bool{}
	for _, o := range []*podspec.Overrides{
		nil,
		{ServiceAccount: "a"},
		{SecurityContext: &corev1.PodSecurityContext{}},
		{Init: podspec.ContainerOverrides{Limits: quantities("cpu", "1")}},
		{Function: podspec.ContainerOverrides{Limits: quantities("cpu", "1")}},
		{Function: podspec.ContainerOverrides{Requests: quantities("cpu", "1")}},
		{Function: podspec.ContainerOverrides{Env: []corev1.EnvVar{{Name: "A"}}}},
		{Function: podspec.ContainerOverrides{EnvFrom: []corev1.EnvFromSource{{Prefix: "P"}}}},
	} {
		if v := version(o); seen[v] {
			t.Errorf("version %s of %+v is that of others", v, o)
		} else {
			seen[v] = true
		}
	}
}
