// SPDX-License-Identifier: Apache-2.0

package podspec_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// observed returns a pod as it was written down.
func observed(t *testing.T, text string) *corev1.Pod {
	t.Helper()
	pod := new(corev1.Pod)
	if err := yaml.UnmarshalStrict([]byte(text), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// status returns what is observed of a pod of ours in the state of another pod.
func status(of *corev1.Pod) pool.Observation {
	pod := builder().Pod(request(podspec.Default(defaults())))
	of.Labels = pod.Labels
	of.Annotations = pod.Annotations
	o, _ := podspec.Observe(of)
	return pool.Observation{Phase: o.Phase, Reason: o.Reason, Node: o.Node, Deleting: o.Deleting, Problem: o.Problem}
}

func TestStatusOfHealthyPods(t *testing.T) {
	tests := map[string]struct {
		reason string
		pod    string
		want   pool.Observation
	}{
		"new": {
			"no component has updated it",
			`{status: {phase: Pending}}`,
			pool.Observation{Phase: pool.PhaseCreating},
		},
		"gated": {
			"another controller holds it back, and decides when to release it", `{status: {phase: Pending, conditions: ` +
				`[{type: PodScheduled, status: "False", reason: SchedulingGated, message: "Scheduling is blocked due to ` +
				`non-empty scheduling gates"}]}}`,
			pool.Observation{Phase: pool.PhaseScheduling, Reason: "SchedulingGated: Scheduling is blocked due to non-empty " +
				"scheduling gates"},
		},
		"on a node": {
			"the kubelet has not said anything yet", `{spec: {nodeName: n1}, status: {phase: Pending, conditions: [{type: ` +
				`PodScheduled, status: "True"}]}}`,
			pool.Observation{Phase: pool.PhasePulling, Node: "n1"},
		},
		"init": {
			"its init container runs", `{spec: {nodeName: n1}, status: {phase: Pending, podIP: 10.0.0.7,
			initContainerStatuses: [{name: copy-wrapper-server, state: {running: {startedAt: "2026-01-01T00:00:00Z"}}}],
			containerStatuses: [{name: function, state: {waiting: {reason: PodInitializing}}}]}}`,
			pool.Observation{Phase: pool.PhasePulling, Reason: `init container "copy-wrapper-server" is running`, Node: "n1"},
		},
		"pulling": {
			"its function's image may be on its way", `{spec: {nodeName: n1}, status: {phase: Pending,
			initContainerStatuses: [{name: copy-wrapper-server, state: {terminated: {exitCode: 0, reason: Completed}}}],
			containerStatuses: [{name: function, state: {waiting: {reason: PodInitializing}}}]}}`,
			pool.Observation{Phase: pool.PhasePulling, Reason: `container "function": PodInitializing`, Node: "n1"},
		},
		"made": {
			"its container is there, but not its address", `{spec: {nodeName: n1}, status: {phase: Pending,
			containerStatuses: [{name: function, containerID: "containerd://1",
			state: {running: {startedAt: "2026-01-01T00:00:00Z"}}}]}}`,
			pool.Observation{Phase: pool.PhaseStarting, Reason: `container "function" is running`, Node: "n1"},
		},
		"running": {
			"its wrapper server may be asked, ready or not",
			`{spec: {nodeName: n1}, status: {phase: Running, podIP: 10.0.0.7, conditions: [{type: Ready, status: "False",
			reason: ContainersNotReady}],
			containerStatuses: [{name: helper, state: {waiting: {reason: CrashLoopBackOff}}}, {name: function,
			state: {running: {startedAt: "2026-01-01T00:00:00Z"}}}]}}`,
			pool.Observation{Phase: pool.PhaseConnecting, Node: "n1"},
		},
		"deleted": {
			"what becomes of its containers is no failure",
			`{metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}, spec: {nodeName: n1},
			status: {phase: Running, podIP: 10.0.0.7, conditions: [{type: DisruptionTarget, status: "True",
			reason: EvictionByEvictionAPI, message: "Eviction API: evicting"}],
			containerStatuses: [{name: function, containerID: "containerd://1", state: {terminated: {exitCode: 0,
			reason: Completed}}}]}}`,
			pool.Observation{
				Phase: pool.PhaseStarting, Reason: "EvictionByEvictionAPI: Eviction API: evicting", Node: "n1", Deleting: true,
			},
		},
		"restarted sidecar": {
			"the kubelet starts it again",
			`{spec: {nodeName: n1, initContainers: [{name: mesh, restartPolicy: Always}]}, status: {phase: Running,
			podIP: 10.0.0.7,
			initContainerStatuses: [{name: mesh, state: {terminated: {exitCode: 1, reason: Error}}}],
			containerStatuses: [{name: function, state: {running: {startedAt: "2026-01-01T00:00:00Z"}}}]}}`,
			pool.Observation{Phase: pool.PhaseConnecting, Node: "n1"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, status(observed(t, tc.pod))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
