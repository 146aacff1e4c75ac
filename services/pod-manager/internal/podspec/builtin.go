// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

const (
	// toolsVolume is the volume with the wrapper server in function pods, and toolsPath is its mount path.
	toolsVolume = "wrapper-server-tools"
	toolsPath   = "/wrapper-server-tools"
	// mountedProgram is the path of the wrapper server in pods that mount its image. The build tool ko stores the program
	// under /ko-app in this image.
	mountedProgram = toolsPath + "/ko-app/wrapper-server"
)

// builtinVersion is the prefix of the built-in template's versions.
const builtinVersion = "builtin-"

// Default returns the built-in template of function pods. Its version is a hash of its content, so that pods become
// outdated when the defaults change.
func Default(d Defaults) Template {
	t, _ := newTemplate(builtinPod(d), builtinService(), d)
	t.version = builtinVersion + t.content
	return t
}

//go:embed builtin.yaml
var builtinYAML string

// builtin contains the decoded objects of builtin.yaml.
var builtin = func() (b struct {
	pod     corev1.Pod
	service corev1.Service
},
) {
	pod, service, _ := strings.Cut(builtinYAML, "\n---\n")
	if err := errors.Join(
		yaml.UnmarshalStrict([]byte(pod), &b.pod), yaml.UnmarshalStrict([]byte(service), &b.service),
	); err != nil {
		panic("podspec: builtin.yaml: " + err.Error())
	}
	return b
}()

// builtinPod returns the pod of the built-in template, without defaults. Callers must add the defaults with
// fillDefaults.
func builtinPod(d Defaults) *corev1.Pod {
	pod := builtin.pod.DeepCopy()
	if d.Launcher != ImageVolume {
		pod.Spec.InitContainers[0].Image = d.WrapperImage
		return pod
	}
	pod.Spec.InitContainers = nil
	image := &corev1.ImageVolumeSource{Reference: d.WrapperImage}
	fillPullPolicy(&image.PullPolicy, d.WrapperImage)
	pod.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{Image: image}
	function := &pod.Spec.Containers[0]
	function.Command = []string{mountedProgram}
	function.Lifecycle = pauseBeforeStop()
	return pod
}

// pauseBeforeStop returns a hook that delays the kubelet's stop signal to the wrapper server by a second. The kernel
// drops signals to the first process of a container until the process has registered a handler. Without the hook, a pod
// that is deleted during its start would miss the signal, and live for its whole grace period. Only pods with image
// volumes have the hook, because clusters without image volumes may be too old for the hook.
func pauseBeforeStop() *corev1.Lifecycle {
	return &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 1}}}
}

func builtinService() *corev1.Service { return builtin.service.DeepCopy() }

// contentHash returns the first digits of a hash of Kubernetes objects and settings.
func contentHash(objects ...any) string {
	content, err := json.Marshal(objects)
	if err != nil {
		panic("podspec: objects of Kubernetes and settings cannot be written as JSON: " + err.Error())
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])[:8]
}
