// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

const (
	// AnnotationIdentity is the SPIFFE ID of a pod that proves who it is.
	AnnotationIdentity = "fn.kpt.dev/identity"
	// AnnotationSecret is what it proves that with: who can read it, and has the network send them what is meant
	// for the pod, can answer in the pod's place. It opens nothing else.
	AnnotationSecret = "fn.kpt.dev/identity-secret" //nolint:gosec // the name of it
)

// TLS has function pods prove who they are, and answer to certain callers only.
type TLS struct {
	// IDs is the beginning of the SPIFFE IDs of pods; namespace and name follow.
	IDs string
	// Authorities are those of the callers' certificates, as PEM.
	Authorities string
	// Callers are patterns of their SPIFFE IDs.
	Callers []string
	// Permissive accepts callers without a certificate too.
	Permissive bool
}

// id is the SPIFFE ID of a pod.
func (t *TLS) id(namespace, pod string) string { return t.IDs + "/" + namespace + "/" + pod }

// env are the variables of a pod's wrapper server. Its secret is not among them, but the place of it.
func (t *TLS) env(id string) []corev1.EnvVar {
	secret := &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + AnnotationSecret + "']"},
	}
	env := []corev1.EnvVar{
		{Name: "FNR_TLS_ID", Value: id},
		{Name: "FNR_TLS_SECRET", ValueFrom: secret},
		{Name: "FNR_TLS_AUTHORITIES", Value: t.Authorities},
		{Name: "FNR_TLS_CALLERS", Value: strings.Join(t.Callers, ",")},
	}
	if t.Permissive {
		env = append(env, corev1.EnvVar{Name: "FNR_TLS_PERMISSIVE", Value: strconv.FormatBool(true)})
	}
	return env
}

// identify adds a pod's identity, if its workload has one.
func (b Builder) identify(pod *corev1.Pod, r Request) {
	if r.TLS == nil {
		return
	}
	id := r.TLS.id(b.Namespace, r.Name)
	pod.Annotations[AnnotationIdentity], pod.Annotations[AnnotationSecret] = id, r.Secret
	setMissing(&pod.Spec.Containers[0], r.TLS.env(id))
}

// identity is how a pod proves who it is; zero for one that does not.
func identity(pod *corev1.Pod) pool.Identity {
	return pool.Identity{ID: pod.Annotations[AnnotationIdentity], Secret: pod.Annotations[AnnotationSecret]}
}
