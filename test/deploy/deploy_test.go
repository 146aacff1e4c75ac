// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// root is the repository's root, relative to this directory, and deploy the directory of the
// manifests.
const (
	root   = "../.."
	deploy = root + "/deploy"
)

// built caches the objects of kustomizations by name: building takes most of the time of these
// tests.
var built = map[string][][]byte{}

// objects builds a kustomization, unless it is in the cache, and decodes it.
func objects(t *testing.T, name, dir string) []runtime.Object {
	t.Helper()
	if _, ok := built[name]; !ok {
		documents, err := manifests.Build(dir)
		if err != nil {
			t.Fatal(err)
		}
		built[name] = documents
	}
	var decoded []runtime.Object
	for _, object := range built[name] {
		o, err := manifests.Decode(object)
		if err != nil {
			t.Fatal(err)
		}
		decoded = append(decoded, o)
	}
	return decoded
}

// eachDeployable runs the test with the objects of each kustomization that is a whole system.
func eachDeployable(t *testing.T, test func(t *testing.T, objects []runtime.Object)) {
	t.Helper()
	for name, dir := range manifests.Combinations(t, deploy) {
		t.Run(name, func(t *testing.T) {
			all := objects(t, name, dir)
			if whole(all) {
				test(t, all)
			}
		})
	}
}

// whole reports whether objects are a whole system: one that may manage function pods.
func whole(objects []runtime.Object) bool {
	return len(of[*appsv1.Deployment](objects)) > 0 && slices.ContainsFunc(of[*rbacv1.Role](objects),
		func(r *rbacv1.Role) bool { return r.Name == "function-pods" })
}

// of returns the objects of one kind.
func of[T runtime.Object](objects []runtime.Object) []T {
	var found []T
	for _, o := range objects {
		if o, ok := o.(T); ok {
			found = append(found, o)
		}
	}
	return found
}

// variable returns the value of a container's variable.
func variable(c corev1.Container, name string) string {
	i := slices.IndexFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == name })
	if i < 0 {
		return ""
	}
	return c.Env[i].Value
}

func TestEverySystemIsComplete(t *testing.T) {
	found := 0
	eachDeployable(t, func(t *testing.T, objects []runtime.Object) {
		found++
		if found := of[*corev1.Namespace](objects); len(found) != 0 {
			t.Errorf("it has %d namespaces, which `kubectl delete` would delete with all that is in them", len(found))
		}
	})
	if found < 10 {
		t.Errorf("%d kustomizations were found: are they elsewhere now?", found)
	}
}
