// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestRightsAreExact checks the rights of the programs that manage pods, each with what needs it,
// and that no account has any other right. (test/e2e/deploy and test/e2e/registries use the API
// server's audit log to check that all of them are used, and no other is requested.)
func TestRightsAreExact(t *testing.T) {
	always := []string{
		// Informers watch pods; pods are created, kept alive by an annotation, and deleted; a pod
		// that another replica created first is read.
		"porch-fn-system pods create", "porch-fn-system pods delete", "porch-fn-system pods get",
		"porch-fn-system pods list", "porch-fn-system pods patch", "porch-fn-system pods watch",
		// Their Services are created and deleted with them.
		"porch-fn-system services create", "porch-fn-system services delete",
		"porch-fn-system services list", "porch-fn-system services watch",
	}
	leases := []string{ // replicas know each other by them
		"porch-fn-system leases.coordination.k8s.io create",
		"porch-fn-system leases.coordination.k8s.io delete",
		"porch-fn-system leases.coordination.k8s.io get",
		"porch-fn-system leases.coordination.k8s.io list", "porch-fn-system leases.coordination.k8s.io update",
	}
	template := []string{ // one ConfigMap, and its changes
		"porch-system configmaps/function-pod-template list", "porch-system configmaps/function-pod-template watch",
	}
	secret := []string{ // the copy of the credentials; creation has no names
		"porch-fn-system secrets create", "porch-fn-system secrets/auth-secret get",
		"porch-fn-system secrets/auth-secret update",
	}
	configs := []string{ // Porch's main branch: configuration of functions, and templates of pods
		"porch-fn-system functionconfigs.config.porch.kpt.dev list",
		"porch-fn-system functionconfigs.config.porch.kpt.dev patch", // a finalizer is removed
		"porch-fn-system functionconfigs.config.porch.kpt.dev watch",
		"porch-fn-system functionconfigs/status.config.porch.kpt.dev patch",
		"porch-fn-system servicetemplates.config.porch.kpt.dev list",
		"porch-fn-system servicetemplates.config.porch.kpt.dev watch",
		"porch-fn-system podtemplates list", "porch-fn-system podtemplates watch",
	}
	issuer := []string{ // the Secrets of certificates, which come with the manifests
		"porch-system secrets/function-runner-authority,gateway-tls,image-resolver-tls get",
		"porch-system secrets/function-runner-authority,gateway-tls,image-resolver-tls update",
	}
	podIssuer := []string{ // the Secret of an authority for calls of function pods
		"porch-fn-system secrets/function-runner-authority get",
		"porch-fn-system secrets/function-runner-authority update",
	}
	manages := map[string]string{"pod-manager": "pod-manager", "function-runner": "porch-fn-runner"}
	eachDeployable(t, func(t *testing.T, objects []runtime.Object) {
		want := map[string][]string{}
		for _, d := range of[*appsv1.Deployment](objects) {
			account, ok := manages[d.Name]
			if !ok {
				continue
			}
			rights := slices.Clone(always)
			if !strings.HasSuffix(t.Name(), "/overlays/porch-main") { // the Role of Porch's main branch suffices
				rights = append(rights, leases...)
			}
			if len(of[*corev1.ConfigMap](objects)) > 0 {
				rights = append(rights, template...)
			}
			isConfigs := func(r *rbacv1.Role) bool { return r.Name == "function-configs" }
			if slices.ContainsFunc(of[*rbacv1.Role](objects), isConfigs) {
				rights = append(rights, configs...)
			}
			if privateRegistries(d.Spec.Template.Spec.Containers[0]) {
				rights = append(rights, secret...)
			}
			if variable(d.Spec.Template.Spec.Containers[0], "FNR_ISSUER_SECRET") != "" {
				if d.Name == "function-runner" {
					rights = append(rights, podIssuer...)
				} else {
					rights = append(rights, issuer...)
				}
			}
			slices.Sort(rights)
			want["porch-system/"+account] = rights
		}
		if diff := gocmp.Diff(want, rights(t, objects)); diff != "" {
			t.Errorf("rights by account differ (-want, +granted):\n%s", diff)
		}
	})
}

// rights returns all rights that Roles grant, in order, by account: the namespace, the resource,
// with the name of the object if it is for that object only and with its API group, and the verb.
func rights(t *testing.T, objects []runtime.Object) map[string][]string {
	t.Helper()
	roles := map[string][]string{}
	for _, r := range of[*rbacv1.Role](objects) {
		for _, rule := range r.Rules {
			if len(rule.APIGroups) != 1 || len(rule.NonResourceURLs) > 0 {
				t.Errorf("role %s has a rule that this test does not support: %+v", r.Name, rule)
			}
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					where := strings.TrimSuffix(resource+"/"+strings.Join(rule.ResourceNames, ","), "/")
					where = strings.TrimSuffix(where+"."+rule.APIGroups[0], ".")
					roles[r.Namespace+"/"+r.Name] = append(roles[r.Namespace+"/"+r.Name], r.Namespace+" "+where+" "+verb)
				}
			}
		}
	}
	granted := map[string][]string{}
	for _, b := range of[*rbacv1.RoleBinding](objects) {
		for _, s := range b.Subjects {
			account := cmp.Or(s.Namespace, s.Kind) + "/" + s.Name
			granted[account] = append(granted[account], roles[b.Namespace+"/"+b.RoleRef.Name]...)
		}
	}
	for account := range granted {
		slices.Sort(granted[account])
	}
	return granted
}
