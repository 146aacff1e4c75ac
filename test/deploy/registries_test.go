// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestPullSecretCanBeKept checks, for systems with private registries, that the program that
// manages pods has the credentials to copy. (TestRightsAreExact checks its rights to do so.)
func TestPullSecretCanBeKept(t *testing.T) {
	found := 0
	eachDeployable(t, func(t *testing.T, objects []runtime.Object) {
		keepers := of[*appsv1.Deployment](objects)
		keepers = slices.DeleteFunc(keepers,
			func(d *appsv1.Deployment) bool { return d.Name != "pod-manager" && d.Name != "function-runner" })
		for _, d := range keepers {
			if !privateRegistries(d.Spec.Template.Spec.Containers[0]) {
				continue
			}
			found++
			if !mountsSecret(d.Spec.Template.Spec, "auth-secret") {
				t.Errorf("%s has no credentials to copy", d.Name)
			}
		}
	})
	if found < 3 {
		t.Errorf("%d Deployments keep the pull secret, want those of both modes and of the overlay", found)
	}
}

// TestOurImagesCanBePrivate checks that systems with private registries pull their own images with
// the same credentials.
func TestOurImagesCanBePrivate(t *testing.T) {
	eachDeployable(t, func(t *testing.T, objects []runtime.Object) {
		deployments := of[*appsv1.Deployment](objects)
		private := slices.ContainsFunc(deployments, func(d *appsv1.Deployment) bool {
			return privateRegistries(d.Spec.Template.Spec.Containers[0])
		})
		var want []corev1.LocalObjectReference
		if private {
			want = []corev1.LocalObjectReference{{Name: "auth-secret"}}
		}
		for _, d := range deployments {
			if got := d.Spec.Template.Spec.ImagePullSecrets; !slices.Equal(got, want) {
				t.Errorf("the image of %s is pulled with %v, want %v", d.Name, got, want)
			}
		}
	})
}

// privateRegistries reports whether a program is configured to use credentials.
func privateRegistries(c corev1.Container) bool {
	return slices.ContainsFunc(c.Env, func(v corev1.EnvVar) bool {
		return v.Name == "FNR_AUTH_SECRET_PATH" && v.Value != ""
	})
}

// mountsSecret reports whether a container of the pod mounts the Secret.
func mountsSecret(pod corev1.PodSpec, name string) bool {
	return slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool {
		return v.Secret != nil && v.Secret.SecretName == name &&
			slices.ContainsFunc(pod.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == v.Name })
	})
}
