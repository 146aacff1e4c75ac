// SPDX-License-Identifier: Apache-2.0

package kube

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// slimObject returns an object without the fields that this program does not use. This saves memory, because each
// replica's informers keep all objects in memory.
func slimObject(object any) (any, error) {
	switch o := object.(type) {
	case *corev1.Pod:
		return slimPod(o), nil
	case *corev1.Service:
		return &corev1.Service{
			ObjectMeta: slimMeta(o.ObjectMeta),
			Spec:       corev1.ServiceSpec{ClusterIP: o.Spec.ClusterIP, Selector: o.Spec.Selector},
		}, nil
	case metav1.Object:
		o.SetManagedFields(nil)
	}
	return object, nil
}

// slimMeta removes the managed fields (a large part of an object), and other unused metadata.
func slimMeta(m metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: m.ResourceVersion,
		CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp,
		Labels: m.Labels, Annotations: m.Annotations,
	}
}

// slimPod removes most of a pod's spec. The spec is not necessary to detect outdated pods, because the pod's
// annotations contain the versions of its template and settings.
func slimPod(pod *corev1.Pod) *corev1.Pod {
	slim := &corev1.Pod{
		ObjectMeta: slimMeta(pod.ObjectMeta),
		Spec: corev1.PodSpec{
			NodeName: pod.Spec.NodeName, RestartPolicy: pod.Spec.RestartPolicy,
			TerminationGracePeriodSeconds: pod.Spec.TerminationGracePeriodSeconds,
		},
		Status: corev1.PodStatus{
			Phase: pod.Status.Phase, Reason: pod.Status.Reason, Message: pod.Status.Message, PodIP: pod.Status.PodIP,
			ContainerStatuses:     slimStatuses(pod.Status.ContainerStatuses),
			InitContainerStatuses: slimStatuses(pod.Status.InitContainerStatuses),
		},
	}
	for _, c := range pod.Spec.InitContainers {
		slim.Spec.InitContainers = append(slim.Spec.InitContainers, corev1.Container{
			Name:          c.Name,
			RestartPolicy: c.RestartPolicy,
		})
	}
	for _, c := range pod.Spec.Containers {
		kept := corev1.Container{Name: c.Name, Command: c.Command}
		if c.Name == podspec.ContainerName {
			kept.Image = c.Image
		}
		slim.Spec.Containers = append(slim.Spec.Containers, kept)
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady || c.Type == corev1.PodScheduled || c.Type == corev1.DisruptionTarget {
			slim.Status.Conditions = append(slim.Status.Conditions, c)
		}
	}
	return slim
}

// slimStatuses removes images and resources, which this program does not use, from the statuses of containers.
func slimStatuses(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	slim := make([]corev1.ContainerStatus, 0, len(statuses))
	for _, s := range statuses {
		slim = append(slim, corev1.ContainerStatus{
			Name: s.Name, State: s.State, LastTerminationState: s.LastTerminationState,
			Ready: s.Ready, RestartCount: s.RestartCount, ContainerID: s.ContainerID,
		})
	}
	return slim
}
