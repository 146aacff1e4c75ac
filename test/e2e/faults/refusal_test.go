// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package faults_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// quotaReached: the namespace may have one pod. The idle pod of another function makes way, and a pod in use when its
// evaluation has ended.
func quotaReached(t *testing.T, sys *system) {
	f, warm := sys.sleeper(t, "quota"), sys.sleeper(t, "quota-warm")
	warm.succeeds(t, "before")
	ctx, quotas := suite.Context(t), s.Client.CoreV1().ResourceQuotas(sys.functions)
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "one"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}},
	}
	if _, err := quotas.Create(ctx, quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	lift := func() {
		if err := quotas.Delete(context.WithoutCancel(ctx), quota.Name, metav1.DeleteOptions{}); err != nil &&
			!apierrors.IsNotFound(err) {
			t.Error(err)
		}
	}
	t.Cleanup(lift)
	sys.awaitQuota(ctx, t, true)
	f.succeeds(t, "in place of the idle pod")
	running := warm.start(t, 3*time.Second)
	f.succeeds(t, "in place of a pod that was in use")
	if err := running(); err != nil {
		t.Errorf("the evaluation that ran: %v", err)
	}
	lift()
	sys.awaitQuota(ctx, t, false)
	warm.succeeds(t, "without the quota")
}

// awaitQuota waits until the API server applies the quota, or its removal.
func (sys *system) awaitQuota(ctx context.Context, t testing.TB, reached bool) {
	t.Helper()
	rejected := suite.Pod("rejected", s.Toolbox)
	rejected.Spec.SecurityContext = &corev1.PodSecurityContext{
		RunAsNonRoot:   new(true),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	rejected.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	options := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	suite.Until(ctx, t, fmt.Sprintf("the quota is reached: %v", reached), func() (bool, string) {
		_, err := s.Client.CoreV1().Pods(sys.functions).Create(ctx, rejected, options)
		return strings.Contains(fmt.Sprint(err), "exceeded quota") == reached, fmt.Sprint(err)
	})
}

// awaitSuccess evaluates the function again and again until it succeeds, as callers do after a
// retryable error.
func (f *function) awaitSuccess(t *testing.T) {
	t.Helper()
	ctx, start := suite.Context(t), time.Now()
	suite.Until(ctx, t, "the function works", func() (bool, string) {
		err := f.evaluateWithin(ctx, longDeadline, 0)
		return err == nil, fmt.Sprint(err)
	})
	t.Logf("succeeded after %v", time.Since(start).Round(time.Millisecond))
}

// nodeUnschedulable: the scheduler reports it. Running evaluations continue, and the pod without a
// node gets one later.
func nodeUnschedulable(t *testing.T, sys *system) {
	f, warm := sys.sleeper(t, "cordon"), sys.sleeper(t, "cordon-warm")
	warm.succeeds(t, "before")
	t.Cleanup(func() { cordon(t, false) })
	cordon(t, true)
	f.fails(t, codes.Unavailable, "Unschedulable", "1 node(s) were unschedulable")
	warm.succeeds(t, "with the node cordoned")
	before := f.pod(t)
	cordon(t, false)
	f.awaitSuccess(t)
	if after := f.pod(t); after.UID != before.UID {
		t.Error("the pod that waited for a node was replaced")
	}
}

// cordon makes the node reject new pods, or accept them again.
func cordon(t testing.TB, unschedulable bool) {
	t.Helper()
	// This is also called when the test's own context has ended.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	nodes, err := s.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 1 {
		t.Fatalf("there are %d nodes, want one: %v", len(nodes.Items), err)
	}
	patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, unschedulable)
	if _, err := s.Client.CoreV1().Nodes().Patch(ctx, nodes.Items[0].Name, types.MergePatchType, patch,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// templateBroken: the last good template stays in force, for new pods too, until it is repaired.
func templateBroken(t *testing.T, sys *system) {
	f, cold := sys.sleeper(t, "template"), sys.sleeper(t, "template-cold")
	f.succeeds(t, "before")
	before := f.pod(t)
	ctx, configMaps := suite.Context(t), s.Client.CoreV1().ConfigMaps(sys.services)
	template, err := configMaps.Get(ctx, "function-pod-template", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	change := func(pod, log string) {
		t.Helper()
		start := time.Now()
		template.Data["template"] = pod
		if template, err = configMaps.Update(ctx, template, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		s.AwaitLog(t, sys.services, sys.pods["pod-manager"].Name, start, log)
	}
	good := template.Data["template"]
	change(strings.ReplaceAll(good, "name: function", "name: other"), "pod template not changed")
	f.succeeds(t, "with a broken template")
	cold.succeeds(t, "cold with a broken template")
	version := before.Annotations["fn.kpt.dev/template-version"]
	if now := f.pod(t); now.UID != before.UID || cold.pod(t).Annotations["fn.kpt.dev/template-version"] != version {
		t.Error("the broken template led to a new pod, or to another one")
	}
	change(good, "pod template applied")
	f.succeeds(t, "with the template repaired")
	f.awaitPool(ctx, t, "the pod is replaced", func(p *podmanagerv1.Pool) bool {
		return ready(p) && p.GetPods()[0].GetTemplateVersion() == template.ResourceVersion
	})
}
