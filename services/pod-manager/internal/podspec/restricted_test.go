// SPDX-License-Identifier: Apache-2.0

package podspec_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// TestRestricted asks Kubernetes' own judge of Pod Security.
func TestRestricted(t *testing.T) {
	judge, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	tests := map[string]struct {
		reason   string
		template podspec.Template
		want     bool
	}{
		"builtin":      {"the default is hardened", podspec.Default(defaults()), true},
		"image volume": {"so is the other launcher", podspec.Default(imageVolume()), true},
		"porch":        {"the documentation's template passes with our image", parsed(t, "porch"), true},
		"foreign init": {"a foreign image may have to be root", parsed(t, "foreign-init"), false},
		"outspoken":    {"templates can override each", parsed(t, "outspoken"), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := builder().Pod(request(tc.template))
			verdict := policy.AggregateCheckResults(judge.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec))
			if verdict.Allowed != tc.want {
				t.Errorf("allowed %v, want %v: %s\n%s", verdict.Allowed, tc.want, tc.reason, verdict.ForbiddenDetail())
			}
		})
	}
}

// TestHardening checks what Pod Security does not look at.
func TestHardening(t *testing.T) {
	for name, template := range map[string]podspec.Template{
		"builtin": podspec.Default(defaults()), "image volume": podspec.Default(imageVolume()), "porch": parsed(t, "porch"),
	} {
		t.Run(name, func(t *testing.T) {
			spec := builder().Pod(request(template)).Spec
			if token := spec.AutomountServiceAccountToken; token == nil || *token {
				t.Error("the pod has a service account token: a function could use it")
			}
			if links := spec.EnableServiceLinks; links == nil || *links {
				t.Error("the pod has service links: a function could see what there is")
			}
			for _, c := range append(spec.InitContainers, spec.Containers...) {
				if root := c.SecurityContext.ReadOnlyRootFilesystem; root == nil || !*root {
					t.Errorf("container %s may write to its root file system", c.Name)
				}
				for _, kind := range []corev1.ResourceName{
					corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage,
				} {
					request, limit := c.Resources.Requests[kind], c.Resources.Limits[kind]
					if request.IsZero() || (limit.IsZero() && kind != corev1.ResourceCPU) {
						t.Errorf("container %s has no request or limit of %s", c.Name, kind)
					}
				}
			}
		})
	}
}

// TestOpenShiftAssignsUsers has the annotation by which a pod asks for a security context constraint.
func TestOpenShiftAssignsUsers(t *testing.T) {
	for annotations, want := range map[string]bool{"{}": true, "{openshift.io/required-scc: restricted-v2}": false} {
		text := "apiVersion: v1\nkind: Pod\nmetadata: {annotations: " + annotations + "}\nspec: {" +
			"initContainers: [{name: copy, image: '" + defaults().WrapperImage + "'}], " +
			"containers: [{name: function, command: [/w]}]}"
		template, _, err := podspec.Parse("1", map[string]string{"template": text}, defaults())
		if err != nil {
			t.Fatal(err)
		}
		spec := builder().Pod(request(template)).Spec
		for _, c := range append(spec.InitContainers, spec.Containers...) {
			if got := c.SecurityContext.RunAsUser != nil; got != want {
				t.Errorf("with annotations %s, container %s has a user: %t, want %t", annotations, c.Name, got, want)
			}
		}
	}
}
