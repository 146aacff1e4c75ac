// SPDX-License-Identifier: Apache-2.0

package prepull

import (
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// digests returns the digests of the images that the status of a node names. A digest means the same image in any
// registry.
func digests(node *corev1.Node) map[string]bool {
	found := make(map[string]bool)
	for _, image := range node.Status.Images {
		for _, name := range image.Names {
			if _, digest, ok := strings.Cut(name, "@"); ok {
				found[digest] = true
			}
		}
	}
	return found
}

// placement is the nodes that pods of a specification may run on.
type placement struct {
	spec     *corev1.PodSpec
	required nodeaffinity.RequiredNodeAffinity // with the node selector
}

func newPlacement(spec *corev1.PodSpec) placement {
	return placement{spec, nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: *spec})}
}

// fits reports whether the scheduler may give pods to a node, as far as nodes tell: the rest, such as resources, is
// left to the scheduler.
func (p placement) fits(node *corev1.Node) bool {
	os := node.Labels[corev1.LabelOSStable]
	required, err := p.required.Match(node) // of a term that is not valid: no pod can be created
	return err == nil && required && ready(node) && !node.Spec.Unschedulable && node.DeletionTimestamp == nil &&
		(os == "" || os == string(corev1.Linux)) &&
		!slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return repels(&t, p.spec) })
}

func ready(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// repels reports whether a taint keeps pods of a specification from its node.
func repels(taint *corev1.Taint, spec *corev1.PodSpec) bool {
	return taint.Effect != corev1.TaintEffectPreferNoSchedule &&
		!slices.ContainsFunc(spec.Tolerations, func(t corev1.Toleration) bool {
			return t.ToleratesTaint(logr.Discard(), taint, false)
		})
}
