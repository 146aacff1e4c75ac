// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// TestMutualTLSIsWhole checks that each program has a certificate where one has, and that all of them call
// each other with TLS.
func TestMutualTLSIsWhole(t *testing.T) {
	found, alone := 0, map[string]bool{}
	eachDeployable(t, func(t *testing.T, objects []runtime.Object) {
		with, deployments := 0, of[*appsv1.Deployment](objects)
		for _, d := range deployments {
			directory := variable(d.Spec.Template.Spec.Containers[0], "FNR_TLS_DIRECTORY")
			if directory != "" {
				checkCertificate(t, d, directory)
			}
			// The issuer's own certificate stays in its memory.
			issues := d.Name == "pod-manager" && variable(d.Spec.Template.Spec.Containers[0], "FNR_ISSUER_SECRET") != ""
			certified := directory != "" || issues
			if certified {
				with++
			}
			for _, name := range []string{"FNR_IMAGE_RESOLVER", "FNR_POD_MANAGER"} {
				address := variable(d.Spec.Template.Spec.Containers[0], name)
				if address != "" && strings.HasPrefix(address, "https://") != certified {
					t.Errorf("%s has %s=%s, and a certificate: %v", d.Name, name, address, certified)
				}
			}
		}
		if with != 0 && with != len(deployments) {
			t.Errorf("%d of %d programs have a certificate", with, len(deployments))
		}
		found += with
		for _, d := range deployments {
			issues := variable(d.Spec.Template.Spec.Containers[0], "FNR_ISSUER_SECRET") != ""
			if d.Name == "function-runner" && issues {
				alone[strings.TrimPrefix(t.Name(), "TestMutualTLSIsWhole/")] = true
				checkAuthority(t, objects)
			}
		}
	})
	for _, overlay := range []string{"porch", "porch-main", "dev-function-runner"} {
		if !alone["overlays/"+overlay] {
			t.Errorf("function pods of the overlay %s answer all that reach them: mutual TLS is on in %v", overlay, alone)
		}
	}
	if found < 2*3 {
		t.Errorf("%d programs have a certificate, want those of both components", found)
	}
}

// checkAuthority checks that function-runner has the Secret for its authority, where function pods are.
func checkAuthority(t *testing.T, objects []runtime.Object) {
	t.Helper()
	secrets := of[*corev1.Secret](objects)
	i := slices.IndexFunc(secrets, func(s *corev1.Secret) bool { return s.Name == "function-runner-authority" })
	if i < 0 || secrets[i].Namespace != "porch-fn-system" {
		t.Errorf("function-runner has no Secret for its authority among %d", len(secrets))
	}
}

// checkCertificate checks that a program finds its certificate where it reads it.
func checkCertificate(t *testing.T, d *appsv1.Deployment, directory string) {
	t.Helper()
	pod := d.Spec.Template.Spec
	i := slices.IndexFunc(pod.Containers[0].VolumeMounts,
		func(m corev1.VolumeMount) bool { return m.MountPath == directory })
	if i < 0 {
		t.Fatalf("%s mounts nothing at %s", d.Name, directory)
	}
	mount := pod.Containers[0].VolumeMounts[i]
	j := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
	source := pod.Volumes[j].VolumeSource
	if variable(pod.Containers[0], "FNR_ISSUER_SECRET") != "" {
		if source.EmptyDir == nil || source.EmptyDir.Medium != corev1.StorageMediumMemory || mount.ReadOnly {
			t.Errorf("%s cannot keep its certificate in memory: %+v", d.Name, source)
		}
		return
	}
	if source.Secret == nil || source.Secret.SecretName != d.Name+"-tls" || !mount.ReadOnly {
		t.Fatalf("%s has its certificate from %+v", d.Name, source)
	}
	var files []string
	for _, item := range source.Secret.Items {
		files = append(files, item.Path)
	}
	if want := []string{mtls.CertificateFile, mtls.KeyFile, mtls.AuthoritiesFile}; !slices.Equal(files, want) {
		t.Errorf("%s mounts %v, want %v: it would start without them", d.Name, files, want)
	}
}

// TestIssuerHasItsSecrets checks that the issuer may write the Secrets that there are, which applying the
// manifests again does not change.
func TestIssuerHasItsSecrets(t *testing.T) {
	for _, name := range []string{"microservices+mutual-tls", "function-runner+mutual-tls-pods"} {
		t.Run(name, func(t *testing.T) {
			issuerHasItsSecrets(t, objects(t, name, manifests.Combinations(t, deploy)[name]))
		})
	}
}

func issuerHasItsSecrets(t *testing.T, all []runtime.Object) {
	t.Helper()
	var secrets []string
	for _, s := range of[*corev1.Secret](all) {
		secrets = append(secrets, s.Name)
		if len(s.Data)+len(s.StringData) > 0 || s.Type != corev1.SecretTypeOpaque {
			t.Errorf("Secret %s has data, or a type that requires some", s.Name)
		}
	}
	roles := of[*rbacv1.Role](all)
	i := slices.IndexFunc(roles, func(r *rbacv1.Role) bool { return r.Name == "issuer" })
	if i < 0 || !slices.Equal(roles[i].Rules[0].ResourceNames, secrets) {
		t.Errorf("the issuer may not write the Secrets %v alone", secrets)
	}
}
