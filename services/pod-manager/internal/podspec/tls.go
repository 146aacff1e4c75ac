// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

const (
	// AnnotationIdentity is the annotation with the pod's SPIFFE ID. Pods without an identity lack the annotation.
	AnnotationIdentity = "krm-function-runner.github.io/identity"
	// AnnotationSecret is the annotation with the secret that proves the pod's identity. An attacker who reads the
	// secret and receives the pod's network traffic can answer instead of the pod. The secret grants nothing else.
	AnnotationSecret = "krm-function-runner.github.io/identity-secret" //nolint:gosec // a name
)

// TLS configures the identity of a function's pods, and restricts their callers.
type TLS struct {
	// IDs is the prefix of the pods' SPIFFE IDs. A pod's ID is this prefix, followed by the pod's namespace and name.
	IDs string
	// Authorities contains the certificates of the authorities that sign the certificates of callers, as PEM.
	Authorities string
	// Callers contains patterns of the SPIFFE IDs that may call the pods.
	Callers []string
}

// podID returns the SPIFFE ID of a pod.
func (t *TLS) podID(namespace, pod string) string { return t.IDs + "/" + namespace + "/" + pod }

// secretVariable is the environment variable with a pod's secret. The secret is not an argument, because functions
// can read the wrapper server's arguments.
const secretVariable = "FNR_TLS_SECRET" //nolint:gosec // a name

// addIdentity adds a SPIFFE ID and its secret to a pod, and returns the wrapper server's arguments for TLS. It does
// nothing if the request has no TLS.
func (b Builder) addIdentity(pod *corev1.Pod, r Request) (args []string) {
	if r.TLS == nil {
		return nil
	}
	id := r.TLS.podID(b.Namespace, r.Name)
	pod.Annotations[AnnotationIdentity] = id
	pod.Annotations[AnnotationSecret] = r.Secret
	secret := corev1.EnvVar{Name: secretVariable, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + AnnotationSecret + "']"},
	}}
	c := &pod.Spec.Containers[0]
	c.Env = append(slices.DeleteFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == secretVariable }), secret)
	return []string{
		"--tls-id=" + id, "--tls-authorities=" + r.TLS.Authorities, "--tls-callers=" + strings.Join(r.TLS.Callers, ","),
	}
}

// identityOf returns the SPIFFE ID of a pod and its secret. The result is zero for pods without an identity.
func identityOf(pod *corev1.Pod) pool.Identity {
	return pool.Identity{ID: pod.Annotations[AnnotationIdentity], Secret: pod.Annotations[AnnotationSecret]}
}
