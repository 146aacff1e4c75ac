// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package pods_test

import (
	"fmt"
	"os"
	"path"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/krm-function-runner/function-runner/libs/testing/conformance"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// admit applies docs/examples/admission-policy.yaml to the namespace of function pods, with other repositories. It
// returns when the API server enforces it.
func (sys *system) admit(t *testing.T, repositories ...string) {
	t.Helper()
	ctx := suite.Context(t)
	content, err := os.ReadFile("../../../docs/examples/admission-policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	first, second, _ := strings.Cut(string(content), "\n---\n")
	var policy admissionv1.ValidatingAdmissionPolicy
	var binding admissionv1.ValidatingAdmissionPolicyBinding
	for text, object := range map[string]any{first: &policy, second: &binding} {
		if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
			t.Fatal(err)
		}
	}
	policy.Name, binding.Name, binding.Spec.PolicyName = sys.functions, sys.functions, sys.functions
	policy.Spec.Variables[0].Expression = "['" + strings.Join(repositories, "', '") + "']"
	binding.Spec.MatchResources.NamespaceSelector.MatchLabels = map[string]string{corev1.LabelMetadataName: sys.functions}
	api := s.Client.AdmissionregistrationV1()
	t.Cleanup(func() {
		_ = api.ValidatingAdmissionPolicyBindings().Delete(suite.Context(t), binding.Name, metav1.DeleteOptions{})
		_ = api.ValidatingAdmissionPolicies().Delete(suite.Context(t), policy.Name, metav1.DeleteOptions{})
	})
	if _, err := api.ValidatingAdmissionPolicies().Create(ctx, &policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.ValidatingAdmissionPolicyBindings().Create(ctx, &binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	suite.Until(ctx, t, "the policy is enforced", func() (bool, string) {
		options := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
		pod := suite.Pod("probe", "example.com/any:v1")
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(int64(65532)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		}
		pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}
		_, err := s.Client.CoreV1().Pods(sys.functions).Create(ctx, pod, options)
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "example.com/any:v1"), fmt.Sprint(err)
	})
}

// TestAdmissionPolicyRefusesImages: callers get the policy's own message, and no pod is created.
func TestAdmissionPolicyRefusesImages(t *testing.T) {
	sys := microservices(t, nil)
	sys.admit(t, path.Dir(s.Program(t, suite.Current, "wrapper-server"))+"/")
	_, err := evaluate(suite.Context(t), sys.connect(t), echo(t), conformance.List)
	const message = "images of function pods are pinned by digest and come from"
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), message) {
		t.Errorf("error %v, want the policy's message", err)
	}
	if pods := sys.functionPods(t); len(pods) > 0 {
		t.Errorf("there are %d pods", len(pods))
	}
}

// TestAdmissionPolicyPermitsListedRepositories: pods of the built-in template name digests.
func TestAdmissionPolicyPermitsListedRepositories(t *testing.T) {
	sys := microservices(t, nil)
	sys.admit(t, path.Dir(s.Program(t, suite.Current, "wrapper-server"))+"/", path.Dir(echo(t))+"/")
	if _, err := evaluate(suite.Context(t), sys.connect(t), echo(t), conformance.List); err != nil {
		t.Error(err)
	}
}
