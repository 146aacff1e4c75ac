// SPDX-License-Identifier: Apache-2.0

// Package podspec defines function pods: it builds a pod and its Service
// from a template, an image and the settings, and it reads from a pod what it is and
// how it is. It does no I/O and has no clock.
//
// Files, in reading order:
//   - podspec has the labels and annotations, and what one pod is built from;
//   - template has the templates that users write: decode reads their text, and check rejects
//     what is no function pod;
//   - builtin has the template of this program, and base those of Porch's objects;
//   - defaults and filesystem add what any of them leaves out;
//   - builder builds pods and Services, with the functions' own overrides and resources, and tls gives
//     pods an identity;
//   - status reads a pod's state, failure and waiting its problems, and launch whether its node
//     could mount the wrapper server's image.
package podspec

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Labels and annotations of function pods and their Services.
const (
	// LabelID is the label with the pod's id, see package podname. The Service
	// selects its pod by it, and has it too.
	LabelID = "fn.kpt.dev/image"
	// LabelPool is the label that all pods of a function have alike, by which the scheduler spreads
	// them over nodes.
	LabelPool = "krm-function-runner.github.io/pool"
	// AnnotationTemplateVersion is the version of the template that was used.
	AnnotationTemplateVersion = "fn.kpt.dev/template-version"
	// AnnotationSettingsVersion identifies the settings beside the template that shaped the pod,
	// see [Builder.SettingsVersion].
	AnnotationSettingsVersion = "krm-function-runner.github.io/settings-version"
	// AnnotationReclaimAfter is when the pod may be collected, in Unix seconds.
	AnnotationReclaimAfter = "fn.kpt.dev/reclaim-after"
	// AnnotationReference is the image's canonical name with tag, without digest.
	AnnotationReference = "krm-function-runner.github.io/image-reference"
	// AnnotationDigest is the digest that the tag meant.
	AnnotationDigest = "krm-function-runner.github.io/image-digest"
	// AnnotationSlot is the pod's number in its pool, from one.
	AnnotationSlot = "krm-function-runner.github.io/slot"
	// AnnotationSafeToEvict lets the cluster autoscaler remove nodes with function
	// pods, unless the template sets another one.
	AnnotationSafeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict"
)

const (
	// Port is where the wrapper server listens in pods, and their Services too.
	Port = 9446
	// ContainerName is the name of the container that runs the function.
	ContainerName = "function"
	// FieldManager is whose fields these are in the eyes of Kubernetes.
	FieldManager = "krm-function-runner"
)

// Function is the image that a pod runs, as the image-resolver describes it.
type Function struct {
	// Reference is the canonical name with tag, if there is one, without digest.
	Reference string
	// Digest is the digest to run.
	Digest string
	// Command is what a container of the image runs: Entrypoint, then Cmd.
	Command []string
	// Architecture is that of the digest, as nodes name theirs; empty if it is not known.
	Architecture string
	// User is the image's user; empty means root.
	User string
	// PullSecret is whether the registry requires credentials.
	PullSecret bool
}

// Workload is what the pods of a function run, and with which settings of its own.
type Workload struct {
	Function Function
	// Concurrency is how many evaluations the pod runs at once.
	Concurrency int
	// MaxEvaluationTime is how long one of them may take; zero leaves it to the builder's
	// variables.
	MaxEvaluationTime time.Duration
	// Prefork, if not nil, is how many processes the pod keeps started; otherwise the
	// wrapper server decides.
	Prefork *int
	// Resources, if not nil, are the function's own, each in place of the template's.
	Resources *corev1.ResourceRequirements
	// Overrides, if not nil, are the function's own in place of the template's.
	Overrides *Overrides
	// TLS, if not nil, has the pods prove who they are.
	TLS *TLS
}

// Request is what one pod is built from.
type Request struct {
	Workload
	Template Template
	// Name is the pod's name, see package podname.
	Name string
	// Slot is the pod's number in its pool, from one.
	Slot int
	// ReclaimAfter is when the pod may be collected.
	ReclaimAfter time.Time
	// Secret is what the pod proves with who it is, if its workload has TLS.
	Secret string
}
