// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/pod-security-admission/api"

	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// namespaces returns those of the one overlay that has some, by name.
func namespaces(t *testing.T) map[string]*corev1.Namespace {
	t.Helper()
	all := objects(t, manifests.Namespaces, filepath.Join(deploy, manifests.Namespaces))
	found := map[string]*corev1.Namespace{}
	for _, ns := range of[*corev1.Namespace](all) {
		found[ns.Name] = ns
	}
	if len(found) != len(all) {
		t.Errorf("%s has other objects than namespaces", manifests.Namespaces)
	}
	return found
}

// TestANewClusterGetsAllNamespaces checks that the overlay with the namespaces has each one that
// objects of a system are in.
func TestANewClusterGetsAllNamespaces(t *testing.T) {
	created := namespaces(t)
	eachDeployable(t, func(t *testing.T, objects []runtime.Object) {
		for _, object := range objects {
			switch object.(type) {
			case *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding:
				continue // they are in none
			}
			meta := object.(metav1.Object)
			if _, ok := created[meta.GetNamespace()]; !ok {
				t.Errorf("%T %s is in %q, which is none of the overlay's namespaces", object, meta.GetName(), meta.GetNamespace())
			}
		}
	})
}

// TestPorchCanBeInstalledLater checks that the namespaces of a new cluster admit Porch's own pods,
// which are not restricted. Function pods are.
func TestPorchCanBeInstalledLater(t *testing.T) {
	created := namespaces(t)
	for label := range created["porch-system"].Labels {
		t.Errorf("Porch's namespace has the label %s, which may keep Porch's own pods out", label)
	}
	functions := created["porch-fn-system"]
	for _, label := range []string{api.EnforceLevelLabel, api.AuditLevelLabel, api.WarnLevelLabel} {
		if level := functions.Labels[label]; level != string(api.LevelRestricted) {
			t.Errorf("%s is %q in the namespace of function pods, want restricted", label, level)
		}
	}
}
