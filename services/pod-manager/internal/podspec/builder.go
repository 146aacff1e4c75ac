package podspec

import corev1 "k8s.io/api/core/v1"

// Builder builds pods and Services. It may be shared.
type Builder struct {
	// Namespace is where they live.
	Namespace string
	// MaxMessageBytes bounds requests and responses of the wrapper server.
	MaxMessageBytes int
	// PullSecret is the name of the pull secret for functions that need one; empty
	// means none is attached.
	PullSecret string
	// ByTag names images by tag only. Otherwise they are pinned by digest too.
	ByTag bool
	// Env are variables for the wrapper server, where the template sets no others of
	// these names. Those with the prefixes FNR_ and OTEL_ are kept from the function.
	Env []corev1.EnvVar
}

// Pod returns the pod that r asks for. It belongs to the caller.
func (b Builder) Pod(_ Request) *corev1.Pod { return &corev1.Pod{} }

// Service returns the Service of the pod that r asks for. It belongs to the caller.
func (b Builder) Service(_ Request) *corev1.Service { return &corev1.Service{} }
