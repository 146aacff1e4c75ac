// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// TestComponentsGoTogether combines each two components on each base, in both orders: the order
// makes no difference.
func TestComponentsGoTogether(t *testing.T) {
	for _, base := range manifests.Bases {
		components := manifests.ComponentsOf(base)
		for i, a := range components {
			for _, b := range components[i+1:] {
				if a == "mutual-tls" && b == "mutual-tls-secrets" {
					continue // one issuer or another
				}
				t.Run(base+"+"+a+"+"+b, func(t *testing.T) {
					ab, ba := combined(t, base, a, b), combined(t, base, b, a)
					if a == "dev" && b == "production" {
						return // both set the size of everything: the last one wins
					}
					if diff := gocmp.Diff(ab, ba); diff != "" {
						t.Errorf("it matters which comes first (-%s first, +%s first):\n%s", a, b, diff)
					}
				})
			}
		}
	}
}

// combined builds components on a base. Lists with names are sorted by name, without duplicates.
func combined(t *testing.T, base string, components ...string) []runtime.Object {
	t.Helper()
	all := objects(t, strings.Join(append([]string{base}, components...), "+"),
		manifests.Combine(t, deploy, flat(t, base), components...))
	for _, d := range of[*appsv1.Deployment](all) {
		pod := &d.Spec.Template.Spec
		c := &pod.Containers[0]
		byName(t, d.Name, c.Env, func(v corev1.EnvVar) string { return v.Name })
		byName(t, d.Name, c.VolumeMounts, func(m corev1.VolumeMount) string { return m.MountPath })
		byName(t, d.Name, pod.Volumes, func(v corev1.Volume) string { return v.Name })
	}
	return all
}

// flat builds a base into one file, since building it takes longer than adding components, and
// returns its directory as a path relative to deploy.
func flat(t *testing.T, base string) string {
	t.Helper()
	name := "base/" + base
	objects(t, name, filepath.Join(deploy, name))
	dir := t.TempDir()
	for file, content := range map[string][]byte{
		"kustomization.yaml": []byte("resources: [base.yaml]\n"),
		"base.yaml":          bytes.Join(built[name], []byte("---\n")),
	} {
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	from, err := filepath.Abs(deploy)
	if err == nil {
		dir, err = filepath.Rel(from, dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	return filepath.ToSlash(dir)
}

// byName sorts a list. A duplicate name is an error.
func byName[T any](t *testing.T, where string, list []T, name func(T) string) {
	t.Helper()
	slices.SortFunc(list, func(a, b T) int { return cmp.Compare(name(a), name(b)) })
	for i := range len(list) - 1 {
		if name(list[i]) == name(list[i+1]) {
			t.Errorf("%s has %s twice", where, name(list[i]))
		}
	}
}
