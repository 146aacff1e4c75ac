// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package chaos_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// managers is how many pod-managers there are.
const managers = 3

// system is the deployed system.
type system struct {
	services, functions string         // namespaces
	replicas            map[string]int // how many of each program there should be
}

func deploy(t *testing.T) *system {
	t.Helper()
	const services, functions, suffix = "porch-system", "porch-fn-system", "-chaos" // in the manifests
	sys := &system{
		services + suffix, functions + suffix,
		map[string]int{"gateway": 2, "pod-manager": managers, "image-resolver": 2},
	}
	t.Cleanup(func() {
		s.RemoveNamespace(t, sys.services)
		s.RemoveNamespace(t, sys.functions)
	})
	here := strings.NewReplacer(services, sys.services, functions, sys.functions, "cpu: 100m", "cpu: 1m")
	objects := suite.Rewrite(t, suite.Build(t, "testdata"), func(document string) string {
		return s.OwnImages(t, suite.Current, here.Replace(document))
	})
	s.Install(suite.Context(t), t, objects...)
	return sys
}

// running returns the pods of a program that run and are not being deleted.
func (sys *system) running(ctx context.Context, program string) ([]corev1.Pod, error) {
	list, err := s.Client.CoreV1().Pods(sys.services).List(ctx, metav1.ListOptions{LabelSelector: "app=" + program})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
		return p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodRunning || p.Status.PodIP == ""
	}), nil
}

// calm reports whether as many replicas of a program are ready as there should be.
func (sys *system) calm(ctx context.Context, program string) (bool, string) {
	pods, err := sys.running(ctx, program)
	ready := 0
	for i := range pods {
		if suite.Ready(&pods[i]) {
			ready++
		}
	}
	return err == nil && ready == sys.replicas[program] && len(pods) == ready,
		fmt.Sprintf("%d of %d %ss are ready: %v", ready, len(pods), program, err)
}

// awaitCalm waits until all replicas are ready.
func (sys *system) awaitCalm(t *testing.T) {
	t.Helper()
	ctx := suite.Context(t)
	for program := range sys.replicas {
		suite.Until(ctx, t, "all replicas are ready", func() (bool, string) { return sys.calm(ctx, program) })
	}
}

// awaitNothingLeft waits until unused pods have expired, and nothing that callers used is left.
func (sys *system) awaitNothingLeft(t *testing.T, before amounts) {
	t.Helper()
	ctx := suite.Context(t)
	suite.Until(ctx, t, "there are no more pods than may be", func() (bool, string) {
		pods, err := s.Client.CoreV1().Pods(sys.functions).List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) <= maxPods, fmt.Sprint(len(pods.Items), " pods")
	})
	begin := time.Now()
	for end := begin.Add(2 * suite.ConditionTimeout); ; { // the time to live, a scan, and what a pod takes to end
		pods, err := s.Client.CoreV1().Pods(sys.functions).List(t.Context(), metav1.ListOptions{})
		if err == nil && len(pods.Items) == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d function pods are left (%v)", len(pods.Items), err)
		}
		<-time.After(time.Second)
	}
	t.Logf("all function pods are collected %v after the last call", time.Since(begin).Round(time.Second))
	sys.awaitNoMore(t, before)
}
