// SPDX-License-Identifier: Apache-2.0

package podspec_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

const (
	permanent   = true
	isTransient = false
)

// waits returns a pod whose function container waits.
func waits(word, text string) *corev1.Pod {
	pod := new(corev1.Pod)
	pod.Spec.NodeName = "n1"
	pod.Status.Phase = corev1.PodPending
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name:  podspec.ContainerName,
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: word, Message: text}},
	}}
	return pod
}

// describeEnd returns a pod whose function container ended after 90 seconds, or at once.
func describeEnd(at, state string) string {
	return `{spec: {nodeName: n1}, status: {phase: Failed, containerStatuses: [{name: function, state: {terminated: ` +
		`{startedAt: "2026-01-01T00:00:00Z", finishedAt: "2026-01-01T00:` + at + `Z", ` + state + `}}}]}}`
}

const (
	soon = "00:01"
	late = "01:30"
)

func TestContainersThatWait(t *testing.T) {
	const pull = `failed to pull and unpack image "r.example/fn:v1": failed to resolve reference "r.example/fn:v1": `
	tests := map[string]struct {
		reason    string
		word      string
		text      string
		permanent bool
	}{
		"unauthorized": {
			"a user has to grant access",
			"ErrImagePull",
			pull + "unexpected status from HEAD request to https://r.example/v2/fn/manifests/v1: 401 Unauthorized", permanent,
		},
		"not found": {
			"a registry that has none will have none",
			"ErrImagePull", "rpc error: code = NotFound desc = " + pull + "r.example/fn:v1: not found", permanent,
		},
		"timeout": {
			"a registry that does not answer may answer later",
			"ErrImagePull",
			pull + `failed to do request: Head "https://r.example/v2/fn/manifests/v1": dial tcp 10.0.0.1:443: i/o timeout`,
			isTransient,
		},
		"unknown CA": {
			"a CA has to be added",
			"ErrImagePull", pull + "tls: failed to verify certificate: x509: certificate signed by unknown authority",
			permanent,
		},
		"backing off": {
			"the kubelet says again what it was",
			"ImagePullBackOff", `Back-off pulling image "r.example/fn:v1": ErrImagePull: 403 Forbidden`, permanent,
		},
		"backing off, before Kubernetes 1.32": {
			"the next ErrImagePull shows the cause, which may pass",
			"ImagePullBackOff", `Back-off pulling image "r.example/fn:v1"`, isTransient,
		},
		"busy registry": {
			"it passes as its cause does",
			"ImagePullBackOff", `Back-off pulling image "a": ErrImagePull: unexpected status: 503 Service Unavailable`,
			isTransient,
		},
		"image name": {
			"a name does not mend itself",
			"InvalidImageName",
			`Failed to apply default image tag "A:b": couldn't parse image name "A:b": invalid reference format`, permanent,
		},
		"never pulled": {
			"a user has to load it onto the node",
			"ErrImageNeverPull", `Container image "a" is not present with pull policy of Never`, permanent,
		},
		"no registry": {
			"the runtime says itself that it may pass",
			"RegistryUnavailable", "image pull failed for a because the registry is unavailable", isTransient,
		},
		"signature": {
			"policy refuses it",
			"SignatureValidationFailed",
			"image pull failed for a because the signature validation failed: Source image rejected", permanent,
		},
		"root": {
			"the pod asks for what cannot be",
			"CreateContainerConfigError",
			`container has runAsNonRoot and image will run as root (pod: "p", container: function)`, permanent,
		},
		"no container": {
			"the runtime cannot make it",
			"CreateContainerError", "failed to generate container spec: no command specified", permanent,
		},
		"slow runtime": {
			"the runtime may be faster next time",
			"CreateContainerError", "context deadline exceeded", isTransient,
		},
		"no program": {
			"the wrapper server is not where it should be",
			"RunContainerError",
			`failed to start containerd task "function": exec: "/wrapper-server-tools/wrapper-server": stat: no such file or ` +
				`directory`,
			permanent,
		},
		"not known to us": {
			"what is not known may pass", "CreatePodSandboxError", "network plugin is not ready", isTransient,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := status(waits(tc.word, tc.text))
			want := pool.Problem{Kind: pool.Stuck, Reason: tc.word + `: container "function": ` + tc.text}
			if tc.permanent {
				want.Kind = pool.Fatal
			}
			if diff := cmp.Diff(want, got.Problem); diff != "" || got.Phase != pool.PhasePulling {
				t.Errorf("phase %d; %s (-want +got):\n%s", got.Phase, tc.reason, diff)
			}
		})
	}
}

func TestMessagesAreOnOneLine(t *testing.T) {
	got := status(waits("ErrImagePull", "403 Forbidden\n  denied:\r\n\tno  way\n\n")).Problem
	if want := `ErrImagePull: container "function": 403 Forbidden denied: no  way`; got.Reason != want {
		t.Errorf("problem = %q, want %q: whole, and on one line", got.Reason, want)
	}
}

func TestPodsThatFailed(t *testing.T) {
	tests := map[string]struct {
		reason string
		pod    string
		want   pool.Problem
	}{
		"crash at start": {
			"the next one will crash too; its last words are told",
			describeEnd(soon, `exitCode: 2, reason: Error, message: "panic: no\n\ngoroutine 1\n"`),
			pool.Problem{Kind: pool.Fatal, Reason: `Error: container "function" ended with exit code 2: panic: no goroutine 1`},
		},
		"crash later": {
			"it served before: the next one will",
			describeEnd(late, `exitCode: 2, reason: Error`),
			pool.Problem{Kind: pool.Lost, Reason: `Error: container "function" ended with exit code 2`},
		},
		"exit 0": {
			"servers do not end",
			describeEnd(late, `exitCode: 0, reason: Completed`),
			pool.Problem{Kind: pool.Lost, Reason: `Completed: container "function" ended with exit code 0`},
		},
		"killed": {
			"it was killed, however soon",
			describeEnd(soon, `exitCode: 137, reason: Error`),
			pool.Problem{Kind: pool.Lost, Reason: `Error: container "function" ended with exit code 137`},
		},
		"memory": {
			"another request may need less",
			describeEnd(soon, `exitCode: 137, reason: OOMKilled`),
			pool.Problem{Kind: pool.Lost, Reason: `OOMKilled: container "function" ended with exit code 137`, OutOfMemory: true},
		},
		"no reason": {
			"any exit code is a failure",
			describeEnd(late, `exitCode: 42`),
			pool.Problem{Kind: pool.Lost, Reason: `Terminated: container "function" ended with exit code 42`},
		},
		"no start": {
			"what could not be started says that it was in 1970", `{spec: {nodeName: n1}, status: {phase: Failed, ` +
				`containerStatuses: [{name: function, state: {terminated: {startedAt: "1970-01-01T00:00:00Z", finishedAt: ` +
				`"2026-01-01T00:00:00Z", exitCode: 128, reason: StartError, message: exec format error}}}]}}`,
			pool.Problem{
				Kind:   pool.Fatal,
				Reason: `StartError: container "function" ended with exit code 128: exec format error`,
			},
		},
		"crash loop": {
			"why it crashes is worth more than that it does",
			`{spec: {nodeName: n1}, status: {phase: Running, podIP: 10.0.0.7, containerStatuses: [{name: function,
			restartCount: 2, containerID: "containerd://1",
			state: {waiting: {reason: CrashLoopBackOff,
			message: back-off 20s restarting failed container=function pod=p_ns(1)}},
			lastState: {terminated: {exitCode: 1, reason: Error, message: no entrypoint}}}]}}`,
			pool.Problem{
				Kind: pool.Fatal,
				Reason: `CrashLoopBackOff: container "function" ended with exit code 1 (Error): no entrypoint: ` +
					`back-off 20s restarting failed container=function pod=p_ns(1)`,
			},
		},
		"memory loop": {
			"another request may need less", `{spec: {nodeName: n1}, status: {containerStatuses: [{name: function, state: ` +
				`{waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 137, reason: OOMKilled}}}]}}`,
			pool.Problem{
				Kind: pool.Lost, OutOfMemory: true,
				Reason: `CrashLoopBackOff: container "function" ended with exit code 137 (OOMKilled)`,
			},
		},
		"memory, and it runs again": {
			"the kubelet was faster than its news, and what ran is lost", `{spec: {nodeName: n1}, status: {phase: Running, ` +
				`podIP: 10.0.0.7, containerStatuses: [{name: function, restartCount: 1, state: {running: {}}, lastState: ` +
				`{terminated: {exitCode: 137, reason: OOMKilled}}}]}}`,
			pool.Problem{Kind: pool.Lost, Reason: `OOMKilled: container "function" ended with exit code 137`, OutOfMemory: true},
		},
		"start error loop": {
			"it was never started, which its next start does not mend",
			`{spec: {nodeName: n1}, status: {phase: Running, containerStatuses: [{name: function, restartCount: 1,
			state: {waiting: {reason: CrashLoopBackOff, message: back-off 10s}},
			lastState: {terminated: {startedAt: "1970-01-01T00:00:00Z", exitCode: 128, reason: StartError,
			message: "exec: no such file or directory"}}}]}}`,
			pool.Problem{
				Kind: pool.Fatal,
				Reason: `CrashLoopBackOff: container "function" ended with exit code 128 (StartError): exec: ` +
					`no such file or directory: back-off 10s`,
			},
		},
		"no start, no message": {
			"the runtime's words are with the last attempt",
			`{spec: {nodeName: n1}, status: {phase: Pending, containerStatuses: [{name: function,
			state: {waiting: {reason: RunContainerError}},
			lastState: {terminated: {exitCode: 128, reason: ContainerCannotRun, message: "exec format error"}}}]}}`,
			pool.Problem{Kind: pool.Fatal, Reason: `RunContainerError: container "function": exec format error`},
		},
		"init container's memory": {
			"the function has not run at all", `{spec: {nodeName: n1, restartPolicy: Never}, status: {phase: Failed, ` +
				`initContainerStatuses: [{name: copy, state: {terminated: {exitCode: 137, reason: OOMKilled}}}]}}`,
			pool.Problem{Kind: pool.Lost, Reason: `OOMKilled: init container "copy" ended with exit code 137`},
		},
		"init container not created": {
			"what comes before the function is part of its start", `{spec: {nodeName: n1}, status: {phase: Pending, ` +
				`initContainerStatuses: [{name: copy, state: {waiting: {reason: CreateContainerError, message: "no command ` +
				`specified"}}}], containerStatuses: [{name: function, state: {waiting: {reason: PodInitializing}}}]}}`,
			pool.Problem{Kind: pool.Fatal, Reason: `CreateContainerError: init container "copy": no command specified`},
		},
		"init container not started": {
			"nor does that mend itself", `{spec: {nodeName: n1, restartPolicy: Never}, status: {phase: Failed, ` +
				`initContainerStatuses: [{name: copy, state: {terminated: {startedAt: "1970-01-01T00:00:00Z", exitCode: 128, ` +
				`reason: StartError, message: "exec: no such file or directory"}}}]}}`,
			pool.Problem{
				Kind:   pool.Fatal,
				Reason: `StartError: init container "copy" ended with exit code 128: exec: no such file or directory`,
			},
		},
		"runtime stopped during the start": {
			"containerd was restarted: another pod starts", `{spec: {nodeName: n1, restartPolicy: Never}, status: ` +
				`{phase: Failed, initContainerStatuses: [{name: copy, state: {terminated: {startedAt: ` +
				`"1970-01-01T00:00:00Z", exitCode: 128, reason: StartError, message: "failed to create containerd task: ` +
				`failed to create shim task: context canceled"}}}]}}`,
			pool.Problem{
				Kind: pool.Lost,
				Reason: `StartError: init container "copy" ended with exit code 128: ` +
					`failed to create containerd task: failed to create shim task: context canceled`,
			},
		},
		"node shut down": {
			"the pod as a whole says more than its container", `{spec: {nodeName: n1}, status: {phase: Failed, reason: ` +
				`Terminated, message: Pod was terminated in response to imminent node shutdown., containerStatuses: [{name: ` +
				`function, state: {terminated: {exitCode: 143, reason: Error}}}]}}`,
			pool.Problem{Kind: pool.Lost, Reason: `Terminated: Pod was terminated in response to imminent node shutdown.`},
		},
		"init container": {
			"without it there is no wrapper server",
			`{spec: {nodeName: n1, restartPolicy: Never}, status: {phase: Failed, initContainerStatuses: [{name: copy,
			state: {terminated: {exitCode: 1, reason: Error, message: "cp: no space left on device"}}}],
			containerStatuses: [{name: function, state: {waiting: {reason: PodInitializing}}}]}}`,
			pool.Problem{
				Kind:   pool.Fatal,
				Reason: `Error: init container "copy" ended with exit code 1: cp: no space left on device`,
			},
		},
		"init container again": {
			"it fails, and is tried again", `{spec: {nodeName: n1}, status: {phase: Pending, initContainerStatuses: [{name: ` +
				`copy, state: {terminated: {exitCode: 137, reason: OOMKilled}}}]}}`,
			pool.Problem{Kind: pool.Stuck, Reason: `OOMKilled: init container "copy" ended with exit code 137`},
		},
		"init container loops": {
			"it fails again and again", `{spec: {nodeName: n1}, status: {phase: Pending, initContainerStatuses: [{name: ` +
				`copy, state: {waiting: {reason: CrashLoopBackOff, message: back-off 10s}}, lastState: {terminated: {exitCode: ` +
				`1, reason: Error}}}]}}`,
			pool.Problem{
				Kind:   pool.Fatal,
				Reason: `CrashLoopBackOff: init container "copy" ended with exit code 1 (Error): back-off 10s`,
			},
		},
		"init container's image": {
			"its image counts as much as the function's", `{spec: {nodeName: n1}, status: {phase: Pending, ` +
				`initContainerStatuses: [{name: copy, state: {waiting: {reason: ImagePullBackOff, message: "not found"}}}], ` +
				`containerStatuses: [{name: function, state: {waiting: {reason: PodInitializing}}}]}}`,
			pool.Problem{Kind: pool.Fatal, Reason: `ImagePullBackOff: init container "copy": not found`},
		},
		"no room": {
			"others end, and nodes are added", `{status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", ` +
				`reason: Unschedulable, message: "0/1 nodes are available: 1 Insufficient cpu."}]}}`,
			pool.Problem{Kind: pool.Held, Reason: `Unschedulable: 0/1 nodes are available: 1 Insufficient cpu.`},
		},
		"evicted": {
			"the node ran short; other nodes may not", `{spec: {nodeName: n1}, status: {phase: Failed, reason: Evicted, ` +
				`message: "The node was low on resource: memory. Threshold quantity: 100Mi, available: 12Mi. ", ` +
				`containerStatuses: [{name: function, state: {terminated: {exitCode: 137, reason: Error}}}]}}`,
			pool.Problem{
				Kind:   pool.Lost,
				Reason: `Evicted: The node was low on resource: memory. Threshold quantity: 100Mi, available: 12Mi.`,
			},
		},
		"refused by the node": {
			"the scheduler and the node did not agree", `{spec: {nodeName: n1}, status: {phase: Failed, reason: OutOfcpu, ` +
				`message: "Node didn't have enough resource: cpu"}}`,
			pool.Problem{Kind: pool.Lost, Reason: `OutOfcpu: Node didn't have enough resource: cpu`},
		},
		"node lost": {
			"it is being deleted, and will not serve", `{metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}, spec: ` +
				`{nodeName: n1}, status: {phase: Running, podIP: 10.0.0.7, reason: NodeLost, message: Node n1 which was running ` +
				`pod p is unresponsive, containerStatuses: [{name: function, state: {running: {}}}]}}`,
			pool.Problem{Kind: pool.Lost, Reason: `NodeLost: Node n1 which was running pod p is unresponsive`},
		},
		"preempted": {
			"a condition says why", `{spec: {nodeName: n1}, status: {phase: Failed, conditions: [{type: DisruptionTarget, ` +
				`status: "True", reason: PreemptionByScheduler, message: "default-scheduler: preempting to accommodate a higher ` +
				`priority pod"}]}}`,
			pool.Problem{
				Kind:   pool.Lost,
				Reason: `PreemptionByScheduler: default-scheduler: preempting to accommodate a higher priority pod`,
			},
		},
		"no word": {
			"it is over all the same",
			`{spec: {nodeName: n1}, status: {phase: Unknown}}`,
			pool.Problem{Kind: pool.Lost, Reason: `Unknown`},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := status(observed(t, tc.pod))
			if diff := cmp.Diff(tc.want, got.Problem); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
