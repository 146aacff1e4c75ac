// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package pods_test

import (
	"fmt"
	"slices"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/libs/testing/conformance"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/imagecopy"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// copyEcho pushes the image of echo under another tag, with another configuration if change is not nil, and returns
// its name.
func copyEcho(t *testing.T, tag string, change func(*v1.Config)) string {
	t.Helper()
	image := imagecopy.Reference(t, echo(t)).Context().Tag(tag).String()
	imagecopy.Push(t, echo(t), image, change)
	return image
}

// TestReplicaThatNeverServesOwnsNothing has a rollout that stalls: a replica of the pod-manager whose template does not
// exist is alive next to one that serves. Cold starts of all functions succeed at once.
func TestReplicaThatNeverServesOwnsNothing(t *testing.T) {
	sys := microservices(t, nil)
	ctx, conn := suite.Context(t), sys.connect(t)
	former, err := s.Client.CoreV1().Pods(sys.services).Get(ctx, sys.manager, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stalled := suite.Pod("pod-manager-stalled", former.Spec.Containers[0].Image)
	stalled.Labels = former.Labels
	stalled.Spec.Containers[0].Env = append(slices.Clone(former.Spec.Containers[0].Env),
		corev1.EnvVar{Name: "FNR_TEMPLATE", Value: "does-not-exist"})
	stalled.Spec.Containers[0].ReadinessProbe = former.Spec.Containers[0].ReadinessProbe
	s.Create(ctx, t, sys.services, stalled)
	suite.Until(ctx, t, "the replica that never serves has its Lease", func() (bool, string) {
		leases, err := s.Client.CoordinationV1().Leases(sys.functions).List(ctx, metav1.ListOptions{})
		return err == nil && len(leases.Items) == 2, fmt.Sprint(err)
	})
	for i := range 8 {
		if _, err := evaluate(ctx, conn, copyEcho(t, fmt.Sprint("stalled-", i), nil), conformance.List); err != nil {
			t.Errorf("cold start %d: %v", i, err)
		}
	}
	now, err := s.Client.CoreV1().Pods(sys.services).Get(ctx, stalled.Name, metav1.GetOptions{})
	if err != nil || suite.Ready(now) {
		t.Errorf("the replica without a template is ready (%v)", err)
	}
}
