// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package chaos_test

import (
	"context"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// harms are what breaks. The kind is a program, the function pods, or the node.
var harms = []harm{
	{"kill", "pod-manager", kill("pod-manager")},
	{"stop", "pod-manager", stop("pod-manager")},
	{"add", "pod-manager", add},
	{"cut from the API", "pod-manager", lose(fromAPI)},
	{"cut from the pods", "pod-manager", lose(fromPods)},
	{"cut from its peers", "pod-manager", lose(fromPeers)},
	{"kill", "gateway", kill("gateway")},
	{"stop", "gateway", stop("gateway")},
	{"kill", "image-resolver", kill("image-resolver")},
	{"stop", "image-resolver", stop("image-resolver")},
	{"kill", "function pod", functionPod(unix.SIGKILL)},
	{"stop", "function pod", functionPod(unix.SIGSTOP)},
	{"delete", "function pod", deletePod},
	{"restart", "node", restart("kubelet")},
	{"restart", "node", restart("containerd")},
	{"restart", "node", restart("kube-proxy")},
}

// victim returns one of a program's pods, with its process; nil if there is none.
func (st *storm) victim(ctx context.Context, t *testing.T, program string) (*corev1.Pod, suite.Process) {
	t.Helper()
	pods, err := st.sys.running(ctx, program)
	if err != nil || len(pods) == 0 {
		return nil, suite.Process{}
	}
	pod := &pods[st.random.IntN(len(pods))]
	process, ok := processOf(t, pod)
	if !ok {
		return nil, suite.Process{}
	}
	return pod, process
}

// processOf returns the process of a replica; false if it has just ended.
func processOf(t *testing.T, pod *corev1.Pod) (suite.Process, bool) {
	t.Helper()
	for _, p := range suite.Processes(t, pod) {
		if p.Program == suite.ProgramOf(pod) {
			return p, true
		}
	}
	return suite.Process{}, false
}

// kill kills a replica together with its pod: another pod replaces it, as its node might be lost.
func kill(program string) func(context.Context, *testing.T, *storm) (string, func()) {
	return func(ctx context.Context, t *testing.T, st *storm) (string, func()) {
		pod, process := st.victim(ctx, t, program)
		if pod == nil {
			return "", nil
		}
		st.crowd.leave(pod.Name)
		killReplica(ctx, t, pod, process)
		return pod.Name, func() {}
	}
}

func killReplica(ctx context.Context, t *testing.T, pod *corev1.Pod, process suite.Process) {
	t.Helper()
	_ = unix.Kill(process.PID, unix.SIGKILL)
	err := s.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name,
		metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	if err != nil {
		t.Errorf("delete the pod of a replica that was killed: %v", err)
	}
}

// stop has a replica stand still for a while.
func stop(program string) func(context.Context, *testing.T, *storm) (string, func()) {
	return func(ctx context.Context, t *testing.T, st *storm) (string, func()) {
		pod, process := st.victim(ctx, t, program)
		if pod == nil || unix.Kill(process.PID, unix.SIGSTOP) != nil {
			return "", nil
		}
		return pod.Name, func() { _ = unix.Kill(process.PID, unix.SIGCONT) }
	}
}

// lose cuts a pod-manager off.
func lose(rules []rule) func(context.Context, *testing.T, *storm) (string, func()) {
	return func(ctx context.Context, t *testing.T, st *storm) (string, func()) {
		pod, process := st.victim(ctx, t, "pod-manager")
		if pod == nil {
			return "", nil
		}
		heal, err := cut(ctx, t, process, rules)
		if err != nil {
			t.Error(err)
			return "", nil
		}
		return pod.Name, heal
	}
}

// add has one pod-manager more for a while.
func add(ctx context.Context, t *testing.T, st *storm) (string, func()) {
	st.sys.scale(ctx, t, managers+1)
	return "one more", func() { st.sys.scale(ctx, t, managers) }
}

// scale has the cluster run so many pod-managers.
func (sys *system) scale(ctx context.Context, t *testing.T, n int) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec": {"replicas": %d}}`, n)
	_, err := s.Client.AppsV1().Deployments(sys.services).Patch(ctx, "pod-manager",
		"application/merge-patch+json", patch, metav1.PatchOptions{})
	if err != nil {
		t.Errorf("scale the pod-managers: %v", err)
	}
}

// functionVictim returns a function pod that is ready.
func (st *storm) functionVictim(ctx context.Context) *corev1.Pod {
	list, err := s.Client.CoreV1().Pods(st.sys.functions).List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) == 0 {
		return nil
	}
	pod := &list.Items[st.random.IntN(len(list.Items))]
	if !suite.Ready(pod) || pod.DeletionTimestamp != nil {
		return nil
	}
	st.harmed = append(st.harmed, pod.Name)
	return pod
}

// functionPod sends a signal to the wrapper server of a function pod.
func functionPod(signal unix.Signal) func(context.Context, *testing.T, *storm) (string, func()) {
	return func(ctx context.Context, t *testing.T, st *storm) (string, func()) {
		pod := st.functionVictim(ctx)
		if pod == nil {
			return "", nil
		}
		for _, p := range suite.Processes(t, pod) {
			if p.Program == suite.WrapperServer(pod) && unix.Kill(p.PID, signal) == nil {
				return pod.Name, func() { _ = unix.Kill(p.PID, unix.SIGCONT) }
			}
		}
		return "", nil
	}
}

// deletePod deletes a function pod with its grace period, as another client of Kubernetes may.
func deletePod(ctx context.Context, t *testing.T, st *storm) (string, func()) {
	pod := st.functionVictim(ctx)
	if pod == nil {
		return "", nil
	}
	if err := s.Client.CoreV1().Pods(st.sys.functions).Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Logf("the pod is gone already: %v", err)
	}
	return pod.Name, func() {}
}

// restart restarts one of the node's programs.
func restart(component string) func(context.Context, *testing.T, *storm) (string, func()) {
	return func(ctx context.Context, t *testing.T, _ *storm) (string, func()) {
		if err := s.Bed.Component(component).Restart(ctx); err != nil {
			t.Errorf("restart %s: %v", component, err)
		}
		return component, func() {}
	}
}
