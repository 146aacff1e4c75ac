// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kube"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// unmounted is the state of a container whose node mounted nothing where the image was
// to be, and refused that of one for which there may be other reasons.
var (
	unmounted = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		Reason: "StartError", ExitCode: 128,
		Message: `exec: "/wrapper-server-tools/ko-app/wrapper-server": no such file or directory`,
	}}
	refused = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
		Reason: "CreateContainerError", Message: "failed to generate container spec",
	}}
	started = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
)

func TestNodesWithoutImageVolumes(t *testing.T) {
	tests := map[string]struct {
		reason string
		states []corev1.ContainerState
		want   pool.ProblemKind // of the last state
		failed int
	}{
		"passed": {
			"nodes can do it: what fails then has other reasons",
			[]corev1.ContainerState{started, refused},
			pool.Fatal, 0,
		},
		"failed": {
			"a pod with an init container is the next attempt",
			[]corev1.ContainerState{refused},
			pool.Lost, 1,
		},
		"failed and again": {"it is reported once", []corev1.ContainerState{unmounted, refused}, pool.Lost, 1},
		"another node":     {"some nodes can and some cannot", []corev1.ContainerState{started, unmounted}, pool.Lost, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var used []podspec.Launcher
				var log journal
				use := func(l podspec.Launcher) { used = append(used, l) }
				w := start(t, func(c *kube.Config) {
					c.Launching = kube.NewLaunching(c.Client, use, log.telemetry().Log)
					c.Templates.UseLauncher(podspec.ImageVolume)
				})
				w.Create(pool.Create{Function: fn, Slot: 1, Name: podName}, workload)
				synctest.Wait()
				var got pool.ProblemKind
				for _, state := range tc.states {
					got = w.problemOf(t, state)
				}
				if got != tc.want {
					t.Errorf("the problem is of kind %v, want %v: %s", got, tc.want, tc.reason)
				}
				if len(used) != tc.failed || (tc.failed > 0 && used[0] != podspec.InitContainer) {
					t.Errorf("launchers in force are %v, want %d: %s", used, tc.failed, tc.reason)
				}
				if log.count("image volumes unsupported") != tc.failed || log.count("container \\\"function\\\"") != tc.failed {
					t.Errorf("want %d errors with the kubelet's words:\n%s", tc.failed, &log.text)
				}
			})
		})
	}
}

// problemOf has the pod's container be in a state, and returns the kind of its problem.
func (w *world) problemOf(t *testing.T, state corev1.ContainerState) pool.ProblemKind {
	t.Helper()
	pod := w.pod(t)
	runs(pod)
	pod.Status.ContainerStatuses[0].State = state
	w.events()
	w.update(t, pod)
	kind := pool.None
	for _, e := range w.events() {
		if o, ok := e.(pool.PodObserved); ok {
			kind = o.Problem.Kind
		}
	}
	return kind
}
