// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// nodeFull has a pod that is more important than function pods take the memory that the node has left, but for less
// than a function pod requests, and callers ask for a function without a pod.
//
// A node that reports MemoryPressure is no such incident: function pods request memory, and Kubernetes has all pods
// that do tolerate its taint.
func nodeFull(ctx context.Context, t *testing.T, at place) {
	filler := s.BarePod("filler")
	filler.Spec.PriorityClassName = "system-node-critical"
	filler.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: freeMemory(ctx, t)}
	s.Create(ctx, t, at.system, filler)
	defer func() {
		over := context.WithoutCancel(ctx)
		if err := s.Client.CoreV1().Pods(at.system).Delete(over, filler.Name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("empty the node: %v", err)
		}
	}()
	conn, image := at.caller(t), minor(t)
	atOnce(ctx, 4, func(int, int) {
		limited, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		if suite.SetNamespace(limited, conn, image) == nil {
			wait(limited, time.Second) // the filler is not there yet, or the pod was there before
		}
	})
}

// freeMemory returns how much memory pods may still request of the node, but for 32 MiB.
func freeMemory(ctx context.Context, t *testing.T) resource.Quantity {
	free := resource.MustParse("-32Mi")
	nodes, err := s.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 1 {
		t.Errorf("find the node of the bed: %v", err)
		return free
	}
	free.Add(*nodes.Items[0].Status.Allocatable.Memory())
	pods, err := s.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{
		FieldSelector: "status.phase!=Succeeded,status.phase!=Failed",
	})
	if err != nil {
		t.Errorf("list the pods of the node: %v", err)
		return free
	}
	for _, pod := range pods.Items {
		for _, c := range pod.Spec.Containers {
			free.Sub(*c.Resources.Requests.Memory())
		}
	}
	return free
}
