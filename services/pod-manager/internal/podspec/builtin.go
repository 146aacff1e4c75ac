// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	// toolsVolume and toolsPath are where the wrapper server is in pods.
	toolsVolume = "wrapper-server-tools"
	toolsPath   = "/wrapper-server-tools"
	// mountedProgram is the wrapper server if its image is mounted, in which ko puts it there.
	mountedProgram = toolsPath + "/ko-app/wrapper-server"
)

// builtinVersion is how versions of the built-in template begin.
const builtinVersion = "builtin-"

// Default returns the built-in template. Its version is a hash of what it says, so
// that other defaults mean new pods.
func Default(d Defaults) Template {
	t, _ := newTemplate(builtinPod(d), builtinService(), d)
	t.version = builtinVersion + t.content
	return t
}

// builtinPod returns what only the built-in template has; fill adds the rest.
func builtinPod(d Defaults) *corev1.Pod {
	function := corev1.Container{
		Name:         ContainerName,
		Command:      []string{toolsPath + "/wrapper-server"},
		Ports:        []corev1.ContainerPort{{Name: "grpc", ContainerPort: Port, Protocol: corev1.ProtocolTCP}},
		VolumeMounts: []corev1.VolumeMount{{Name: toolsVolume, MountPath: toolsPath, ReadOnly: true}},
	}
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
	tools := corev1.Volume{Name: toolsVolume}
	toolsSize := resource.MustParse("128Mi") // several times the wrapper server
	if d.Launcher == ImageVolume {
		function.Command = []string{mountedProgram}
		tools.Image = &corev1.ImageVolumeSource{Reference: d.WrapperImage}
		fillPullPolicy(&tools.Image.PullPolicy, d.WrapperImage)
		function.Lifecycle = pauseBeforeStop()
	} else {
		tools.EmptyDir = &corev1.EmptyDirVolumeSource{SizeLimit: &toolsSize}
		pod.Spec.InitContainers = []corev1.Container{{
			Name:         "copy-wrapper-server",
			Image:        d.WrapperImage,
			Args:         []string{"install", toolsPath},
			VolumeMounts: []corev1.VolumeMount{{Name: toolsVolume, MountPath: toolsPath}},
		}}
	}
	pod.Spec.Containers = []corev1.Container{function}
	pod.Spec.Volumes = []corev1.Volume{tools}
	return pod
}

// pauseBeforeStop has the kubelet wait before it tells the wrapper server to end. The
// kernel drops signals for the first process of a container until that can take them: a
// pod that is deleted right when it starts would live for its whole grace period.
//
// A cluster without image volumes may be too old for this.
func pauseBeforeStop() *corev1.Lifecycle {
	return &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 1}}}
}

// builtinService returns the Service without what differs from pod to pod. It leads to
// pods that are not ready too: the pod-manager asks their wrapper servers itself, sooner
// than a probe would.
func builtinService() *corev1.Service {
	return &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP,
			Ports: []corev1.ServicePort{
				{Name: "grpc", Port: Port, TargetPort: intstr.FromInt32(Port), Protocol: corev1.ProtocolTCP},
			},
			PublishNotReadyAddresses: true,
		},
	}
}

// contentHash returns the first digits of a hash of Kubernetes objects and settings.
func contentHash(objects ...any) string {
	content, err := json.Marshal(objects)
	if err != nil {
		panic("podspec: objects of Kubernetes and settings cannot be written as JSON: " + err.Error())
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])[:8]
}
