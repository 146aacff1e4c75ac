// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// pod returns a pod as Kubernetes has it, in which each state of a container occurs.
func fullPod() *corev1.Pod {
	builder := podspec.Builder{Namespace: namespaceOfTests, MaxMessageBytes: 1 << 20}
	pod := builder.Pod(podspec.Request{
		Workload: podspec.Workload{Function: podspec.Function{
			Reference: "example.com/fn:v1", Digest: "sha256:01",
			Command: []string{"/fn"},
		}},
		Template: podspec.Default(podspec.Defaults{
			WrapperImage:           "example.com/wrapper:v1",
			TerminationGracePeriod: time.Minute,
		}), Name: "fn-1", Slot: 1,
		ReclaimAfter: time.Unix(1e9, 0),
	})
	pod.UID = "uid"
	pod.ResourceVersion = "7"
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	pod.Spec.NodeName = "node-1"
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: "10.0.0.1", HostIP: "192.0.2.1", QOSClass: corev1.PodQOSBurstable,
		Conditions: []corev1.PodCondition{{Type: corev1.PodInitialized, Status: "True"}, {
			Type:   corev1.PodReady,
			Status: "True",
		}, {Type: corev1.PodScheduled, Status: "True"}},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: "function", Ready: true, RestartCount: 1, ContainerID: "containerd://1",
			Image: "example.com/fn:v1", ImageID: "sha256:01",
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				Reason:   "OOMKilled",
				ExitCode: 137,
			}},
		}},
	}
	return pod
}

const namespaceOfTests = "fns"

// TestSlimPodIsObservedAlike compares what is read of whole pods and of slim ones.
func TestSlimPodIsObservedAlike(t *testing.T) {
	changes := map[string]func(*corev1.Pod){
		"running":  func(*corev1.Pod) {},
		"deleting": func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1e9, 0)} },
		"pending": func(p *corev1.Pod) {
			p.Spec.NodeName = ""
			p.Status = corev1.PodStatus{}
		},
		"unschedulable": func(p *corev1.Pod) {
			p.Spec.NodeName, p.Status.ContainerStatuses = "", nil
			p.Status.Conditions = []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: "False",
				Reason: "Unschedulable", Message: "0/3 nodes",
			}}
		},
		"evicted": func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodFailed
			p.Status.Reason = "Evicted"
			p.Status.Message = "the node is out of memory"
		},
		"disrupted": func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodFailed
			p.Status.Conditions = []corev1.PodCondition{{
				Type: corev1.DisruptionTarget, Status: "True",
				Reason: "PreemptionByScheduler",
			}}
		},
		"init container fails": func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{
				Name:  p.Spec.InitContainers[0].Name,
				State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}},
			}}
			p.Status.ContainerStatuses = nil
		},
		"image missing": func(p *corev1.Pod) {
			waiting := &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "not found"}
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: waiting}
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			whole := fullPod()
			change(whole)
			got, err := slimObject(whole.DeepCopy())
			if err != nil {
				t.Fatal(err)
			}
			slimmed := got.(*corev1.Pod)
			a, _ := podspec.Observe(whole)
			b, _ := podspec.Observe(slimmed)
			if a != b {
				t.Errorf("a whole pod is observed as\n%+v\nand a slim one as\n%+v", a, b)
			}
			if x, y := podspec.LaunchOf(whole), podspec.LaunchOf(slimmed); x != y {
				t.Errorf("launch %v and %v", x, y)
			}
			x, y := shortGracePeriod(whole, whole.UID), shortGracePeriod(slimmed, whole.UID)
			if (x == nil) != (y == nil) || (x != nil && *x != *y) {
				t.Errorf("grace %v and %v", x, y)
			}
		})
	}
	whole, slimmed := size(t, fullPod()), 0
	if got, err := slimObject(fullPod()); err == nil {
		slimmed = size(t, got)
	}
	if slimmed*2 > whole {
		t.Errorf("a slim pod has %d bytes, and a whole one %d", slimmed, whole)
	}
}

// size is the size of an object's text.
func size(t *testing.T, object any) int {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return len(text)
}
