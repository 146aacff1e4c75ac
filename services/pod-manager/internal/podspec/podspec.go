// SPDX-License-Identifier: Apache-2.0

// Package podspec defines function pods: it builds a pod and its Service from a template, an image and the settings,
// and it reads the identity and the state of a pod. It performs no I/O and reads no clock.
//
// Files, in reading order: podspec (labels, annotations, inputs of a pod); template (users' templates), decode (their
// text), check (their validation); builtin and base (the built-in template and Porch's objects); defaults and
// filesystem (gaps of templates); builder, overrides, resources and tls (pods and Services); status, failure, waiting
// and launch (the state of a pod).
package podspec

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Labels and annotations of function pods and their Services.
const (
	// LabelID is the label with the pod's id, see package podname. The pod's Service has the same label, and selects
	// the pod by this label.
	LabelID = "fn.kpt.dev/image"
	// LabelPool is the same for all pods of a function. The scheduler spreads the pods over nodes by this label.
	LabelPool = "krm-function-runner.github.io/pool"
	// AnnotationTemplateVersion is the version of the template.
	AnnotationTemplateVersion = "fn.kpt.dev/template-version"
	// AnnotationSettingsVersion identifies the settings that shaped the pod in addition to the template, see
	// [Builder.SettingsVersion].
	AnnotationSettingsVersion = "krm-function-runner.github.io/settings-version"
	// AnnotationReclaimAfter is the pod's expiry, in Unix seconds.
	AnnotationReclaimAfter = "fn.kpt.dev/reclaim-after"
	// AnnotationReference is the image's canonical name with tag, without digest.
	AnnotationReference = "krm-function-runner.github.io/image-reference"
	// AnnotationDigest is the image's digest.
	AnnotationDigest = "krm-function-runner.github.io/image-digest"
	// AnnotationSlot is the pod's number in its pool, starting at 1.
	AnnotationSlot = "krm-function-runner.github.io/slot"
	// AnnotationSafeToEvict lets the cluster autoscaler remove nodes with function pods, unless the template sets
	// another value.
	AnnotationSafeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict"
)

const (
	// Port is the port of the wrapper server in pods, and of their Services.
	Port = 9446
	// ContainerName is the name of the container that runs the function.
	ContainerName = "function"
	// FieldManager is the field manager in this program's requests to the Kubernetes API.
	FieldManager = "krm-function-runner"
)

// Function is the image of a pod, as the image-resolver describes it.
type Function struct {
	// Reference is the image's canonical name with its tag, if it has a tag, and without digest.
	Reference string
	// Digest is the digest of the image that pods run. If it is empty, pods run the reference.
	Digest string
	// Command is the command of the image's containers: Entrypoint, then Cmd.
	Command []string
	// Architecture is the architecture of the digest, such as "amd64", as in node labels. It is empty if it is
	// unknown.
	Architecture string
	// User is the image's user. Empty means root.
	User string
	// PullSecret is true if the registry requires credentials.
	PullSecret bool
}

// Workload contains the image of a function's pods and the function's own settings.
type Workload struct {
	Function Function
	// Concurrency is the maximum number of concurrent evaluations.
	Concurrency int
	// MaxEvaluationTime limits an evaluation. If it is zero, the limit in the builder's Args applies.
	MaxEvaluationTime time.Duration
	// Prefork is the number of spare processes of the function. If it is nil, the wrapper server uses its own
	// default.
	Prefork *int
	// Resources replaces single resources of the template, such as the memory limit. It may be nil.
	Resources *corev1.ResourceRequirements
	// Overrides replaces values of the template. It may be nil.
	Overrides *Overrides
	// TLS gives the pods an identity. It is nil for pods without an identity.
	TLS *TLS
}

// Request contains everything from which a [Builder] builds a pod and its Service.
type Request struct {
	Workload
	Template Template
	// Name is the pod's name, see package podname.
	Name string
	// Slot is the pod's number in its pool, starting at 1.
	Slot int
	// ReclaimAfter is the pod's expiry.
	ReclaimAfter time.Time
	// Secret proves the pod's identity, if its workload has TLS.
	Secret string
}
