// SPDX-License-Identifier: Apache-2.0

package podspec_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// prepullRequest is what a pre-pull pod is made from in tests.
func prepullRequest(template podspec.Template) podspec.Request {
	r := request(template)
	r.Function.PullSecret, r.Function.Architecture = true, "arm64"
	return r
}

// TestPrepullPod compares a pre-pull pod with a function pod.
func TestPrepullPod(t *testing.T) {
	r := prepullRequest(podspec.Default(defaults()))
	pod, function := builder().Prepull(r, "node-1"), builder().Pod(r)
	if _, ours := podspec.Identify(pod); ours || pod.Labels[podspec.LabelID] != "" || pod.Labels[podspec.LabelPool] != "" {
		t.Errorf("pools take it for a function pod: %v", pod.ObjectMeta)
	}
	want := pool.Function{Reference: r.Function.Reference, Digest: digest}
	if f, node, _, _ := podspec.Prepulled(pod); f != want || node != "node-1" {
		t.Errorf("it is read as one of %v on %s", f, node)
	}
	expected := function.Spec // with what differs
	expected.Containers[0].Args, expected.Containers[0].Ports = []string{"--help"}, nil
	expected.ActiveDeadlineSeconds, expected.TerminationGracePeriodSeconds = new(int64(600)), new(int64(1))
	expected.TopologySpreadConstraints, expected.Affinity = nil, pod.Spec.Affinity // see TestPrepullPodIsPinned
	if diff := cmp.Diff(expected, pod.Spec, cmpopts.IgnoreFields(corev1.Container{}, "Env")); diff != "" {
		t.Errorf("the pod differs from that of the function (-want +got):\n%s", diff)
	}
	if other := builder().Prepull(r, "node-2"); other.Name == pod.Name {
		t.Errorf("the pods of two nodes have the name %s", other.Name)
	}
}

func TestPrepullPodsAreRestricted(t *testing.T) {
	judge, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for name, d := range map[string]podspec.Defaults{"builtin": defaults(), "image volume": imageVolume()} {
		pod := builder().Prepull(prepullRequest(podspec.Default(d)), "node-1")
		verdict := policy.AggregateCheckResults(judge.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec))
		if !verdict.Allowed {
			t.Errorf("%s: %s", name, verdict.ForbiddenDetail())
		}
	}
}

// TestPrepullPodIsPinned gives templates an affinity of their own.
func TestPrepullPodIsPinned(t *testing.T) {
	const text = `apiVersion: v1
kind: Pod
spec:
  affinity:
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {team: blue}}}
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
          - {matchExpressions: [{key: disk, operator: Exists}]}
          - {matchExpressions: [{key: zone, operator: Exists}]}
  containers:
    - {name: function, image: replaced, command: [/tools/wrapper-server]}
`
	own, _, err := podspec.Parse("1", map[string]string{"template": text}, defaults())
	if err != nil {
		t.Fatal(err)
	}
	for terms, template := range []podspec.Template{1: podspec.Default(defaults()), 2: own} {
		if terms == 0 {
			continue
		}
		pod := builder().Prepull(prepullRequest(template), "node-1")
		required := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		pinned := !slices.ContainsFunc(required, func(term corev1.NodeSelectorTerm) bool {
			return len(term.MatchFields) != 1 || term.MatchFields[0].Values[0] != "node-1"
		})
		if len(required) != terms || !pinned || pod.Spec.Affinity.PodAntiAffinity != nil {
			t.Errorf("the affinity is %+v, want %d terms for the node", pod.Spec.Affinity, terms)
		}
	}
}

// unscheduled is the status of a pod for which the scheduler finds no node.
func unscheduled(message string) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message,
	}}}
}

// TestPrepulled reads pods that have come so far.
func TestPrepulled(t *testing.T) {
	waits := func(reason string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "not found"}}
	}
	ends := func(code int32) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error"}}
	}
	for _, row := range []struct {
		reason   string
		phase    corev1.PodPhase
		evicted  string
		init     corev1.ContainerState
		function corev1.ContainerState
		ended    bool
		problem  string
	}{
		{"it is being pulled", corev1.PodPending, "", ends(0), waits("ContainerCreating"), false, ""},
		{"it runs, so it is there", corev1.PodRunning, "", ends(0), corev1.ContainerState{
			Running: &corev1.ContainerStateRunning{},
		}, true, ""},
		{"it has run", corev1.PodSucceeded, "", ends(0), ends(0), true, ""},
		{"its program does not know --help", corev1.PodFailed, "", ends(0), ends(2), true, ""},
		{
			"it cannot be pulled", corev1.PodPending, "", ends(0), waits("ErrImagePull"), true,
			`ErrImagePull: container "function": not found`,
		},
		{
			"what comes before cannot be pulled", corev1.PodPending, "", waits("ImagePullBackOff"), waits("PodInitializing"),
			true, `ImagePullBackOff: init container "copy-wrapper-server": not found`,
		},
		{"it was evicted meanwhile", corev1.PodFailed, "Evicted", ends(0), ends(137), true, "Evicted"},
		{
			"its node lacks capacity: another node pulls meanwhile", corev1.PodPending, "",
			corev1.ContainerState{},
			corev1.ContainerState{},
			true, "Unschedulable: 0/3 nodes are available: 1 Insufficient memory.",
		},
	} {
		pod := builder().Prepull(prepullRequest(podspec.Default(defaults())), "node-1")
		pod.Status = corev1.PodStatus{
			Phase: row.phase, Reason: row.evicted,
			InitContainerStatuses: []corev1.ContainerStatus{{Name: "copy-wrapper-server", State: row.init}},
			ContainerStatuses:     []corev1.ContainerStatus{{Name: podspec.ContainerName, State: row.function}},
		}
		if row.function == (corev1.ContainerState{}) {
			pod.Status = unscheduled("0/3 nodes are available: 1 Insufficient memory.")
		}
		if _, _, ended, problem := podspec.Prepulled(pod); ended != row.ended || problem != row.problem {
			t.Errorf("%s: ended %v with %q, want %v with %q", row.reason, ended, problem, row.ended, row.problem)
		}
	}
}
