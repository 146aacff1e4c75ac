// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

const (
	// AnnotationIdentity is the SPIFFE ID of a pod that proves who it is.
	AnnotationIdentity = "krm-function-runner.github.io/identity"
	// AnnotationSecret is what it proves that with: who can read it, and has the network send them what is meant
	// for the pod, can answer in the pod's place. It opens nothing else.
	AnnotationSecret = "krm-function-runner.github.io/identity-secret" //nolint:gosec // the name of it
)

// TLS has function pods prove who they are, and answer to certain callers only.
type TLS struct {
	// IDs is the beginning of the SPIFFE IDs of pods; namespace and name follow.
	IDs string
	// Authorities are those of the callers' certificates, as PEM.
	Authorities string
	// Callers are patterns of their SPIFFE IDs.
	Callers []string
}

// id is the SPIFFE ID of a pod.
func (t *TLS) id(namespace, pod string) string { return t.IDs + "/" + namespace + "/" + pod }

// secretVariable is the variable of a pod's secret. It is no argument: functions can read those of the server.
const secretVariable = "FNR_TLS_SECRET" //nolint:gosec // a name

// identify adds a pod's identity, if its workload has one, and returns the arguments for it.
func (b Builder) identify(pod *corev1.Pod, r Request) (args []string) {
	if r.TLS == nil {
		return nil
	}
	id := r.TLS.id(b.Namespace, r.Name)
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

// identity is how a pod proves who it is; zero for one that does not.
func identity(pod *corev1.Pod) pool.Identity {
	return pool.Identity{ID: pod.Annotations[AnnotationIdentity], Secret: pod.Annotations[AnnotationSecret]}
}
