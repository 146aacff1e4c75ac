// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podname"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

const (
	// LabelPrepull is the label of pre-pull pods. They do not have [LabelID], by which pools, Services and
	// garbage collection know function pods.
	LabelPrepull = "fn.kpt.dev/prepull"
	// AnnotationNode is the node that a pre-pull pod is for.
	AnnotationNode = "fn.kpt.dev/prepull-node"
)

// prepullSeconds bounds how long a pre-pull pod runs on its node, also without this program.
const prepullSeconds = 600

// Prepull returns the pod that has a node pull the images of function pods: it is such a pod, on that node, whose
// wrapper server prints its usage and ends. Of r it takes the function, its overrides and the template.
func (b Builder) Prepull(r Request, node string) *corev1.Pod {
	r.Name, r.Slot = podname.Prepull(r.Function.Reference, r.Function.Digest, node), 1
	r.Resources, r.TLS = nil, nil // it needs neither
	pod := b.Pod(r)
	pod.Labels[LabelPrepull] = "true"
	pod.Annotations[AnnotationNode] = node
	delete(pod.Labels, LabelID)
	delete(pod.Labels, LabelPool)
	for _, name := range []string{
		AnnotationTemplateVersion, AnnotationSettingsVersion, AnnotationReclaimAfter, AnnotationSlot,
	} {
		delete(pod.Annotations, name)
	}
	c := &pod.Spec.Containers[0]
	c.Args, c.Ports, c.Lifecycle = []string{"--help"}, nil, nil
	c.StartupProbe, c.ReadinessProbe, c.LivenessProbe = nil, nil, nil
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.ActiveDeadlineSeconds, pod.Spec.TerminationGracePeriodSeconds = new(int64(prepullSeconds)), new(int64(1))
	pod.Spec.PriorityClassName = "" // it takes no other pod's place
	pod.Spec.TopologySpreadConstraints = nil
	pinToNode(&pod.Spec, node)
	return pod
}

// pinToNode lets the scheduler choose only one node. What the template says about nodes holds too; what it says about
// other pods does not.
func pinToNode(spec *corev1.PodSpec, node string) {
	required := make([]corev1.NodeSelectorTerm, 1)
	if a := spec.Affinity; a != nil && a.NodeAffinity != nil {
		selector := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		if selector != nil && len(selector.NodeSelectorTerms) > 0 {
			required = selector.NodeSelectorTerms
		}
	}
	for i := range required {
		required[i].MatchFields = append(required[i].MatchFields, corev1.NodeSelectorRequirement{
			Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
		})
	}
	spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: required},
	}}
}

// Prepulled returns the function and the node of a pre-pull pod, whether it has come to its end, and what kept its
// node from pulling the images; empty if nothing did.
func Prepulled(pod *corev1.Pod) (f pool.Function, node string, ended bool, problem string) {
	f = pool.Function{Reference: pod.Annotations[AnnotationReference], Digest: pod.Annotations[AnnotationDigest]}
	node = pod.Annotations[AnnotationNode]
	if p := podFailure(pod); p != nil {
		return f, node, true, p.Reason
	}
	// However the container ends, its image is on the node.
	if s := functionStatus(pod); s != nil && (s.State.Running != nil || s.State.Terminated != nil) {
		return f, node, true, ""
	}
	if p := failure(pod); p != nil {
		return f, node, true, p.Reason
	}
	return f, node, false, ""
}
