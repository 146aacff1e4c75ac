// SPDX-License-Identifier: Apache-2.0

// Package podspec defines function pods. It builds a pod and its Service from a template, an image and the
// settings, and reads the identity and the state of existing pods. It performs no I/O and reads no clock.
//
// Files, in reading order: podspec (labels and input); template and decode (users' templates, and Porch's objects);
// builtin (the built-in template); defaults (for unset fields); builder and overrides (building of pods and
// Services); status and failure (state).
package podspec

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Labels and annotations of function pods and their Services.
const (
	// LabelID is the label by which a Service selects its pod. Its value is the pod's id, see package podname.
	LabelID = "fn.kpt.dev/image"
	// LabelPool is the label with the same value on all pods of a function. The scheduler uses it to spread them over
	// nodes.
	LabelPool = "krm-function-runner.github.io/pool"
	// AnnotationTemplateVersion is the annotation with the version of the pod's template.
	AnnotationTemplateVersion = "fn.kpt.dev/template-version"
	// AnnotationSettingsVersion is the annotation with the hash of the pod's settings, see [Builder.SettingsVersion].
	AnnotationSettingsVersion = "krm-function-runner.github.io/settings-version"
	// AnnotationReclaimAfter is the annotation with the time, in Unix seconds, after which an unused pod is deleted.
	AnnotationReclaimAfter = "fn.kpt.dev/reclaim-after"
	// AnnotationReference is the annotation with the image's canonical name, with tag and without digest.
	AnnotationReference = "krm-function-runner.github.io/image-reference"
	// AnnotationDigest is the annotation with the digest of the image.
	AnnotationDigest = "krm-function-runner.github.io/image-digest"
	// AnnotationSlot is the annotation with the slot, the pod's number among the function's pods, from 1.
	AnnotationSlot = "krm-function-runner.github.io/slot"
	// AnnotationSafeToEvict is the annotation that permits the cluster autoscaler to remove nodes with function pods. The
	// template may set another value.
	AnnotationSafeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict"
)

const (
	// Port is the port where wrapper servers listen in pods, and the port of the pods' Services.
	Port = 9446
	// ContainerName is the name of the container that runs the function.
	ContainerName = "function"
	// FieldManager is the field manager in this program's requests to the Kubernetes API.
	FieldManager = "krm-function-runner"
)

// Function describes the image of a function's pods, as the image-resolver reports it.
type Function struct {
	// Reference is the image's canonical name without digest. It contains the tag, if there is a tag.
	Reference string
	// Digest is the digest of the image that pods run.
	Digest string
	// Command is the command line of the image: its Entrypoint, followed by its Cmd.
	Command []string
	// Architecture is the CPU architecture of the image, as in node labels, such as "amd64". It is empty if unknown.
	Architecture string
	// User is the user in the image's configuration. An empty user means root.
	User string
	// PullSecret is true if the image's registry requires credentials, so that the pod needs the pull secret.
	PullSecret bool
}

// Workload contains the image and the settings that all pods of a function share.
type Workload struct {
	Function Function
	// Concurrency is the maximum number of concurrent evaluations in a pod.
	Concurrency int
	// MaxEvaluationTime limits the duration of an evaluation. If it is zero, the limit in [Builder.Args] applies.
	MaxEvaluationTime time.Duration
	// Prefork is the number of function processes that the wrapper server starts in advance. Nil means the default of the
	// wrapper server.
	Prefork *int
	// Resources replaces single values of the resources in the template, such as the memory limit. It is nil if not set.
	Resources *corev1.ResourceRequirements
	// Overrides replaces other values of the pod template. It is nil if not set.
	Overrides *Overrides
	// TLS gives the pods a SPIFFE ID, and restricts their callers. It is nil for pods without TLS.
	TLS *TLS
}

// Request describes the pod and the Service that a [Builder] builds.
type Request struct {
	Workload
	Template Template
	// Name is the pod's name, see package podname.
	Name string
	// Slot is the pod's number among the pods of its function, starting at 1.
	Slot int
	// ReclaimAfter is the pod's expiry.
	ReclaimAfter time.Time
	// Secret proves the pod's SPIFFE ID to callers. It is used only if TLS is set.
	Secret string
}
