// SPDX-License-Identifier: Apache-2.0

package podspec_test

import (
	"testing"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

func TestLaunch(t *testing.T) {
	const missing = `exec: "/wrapper-server-tools/ko-app/wrapper-server": stat ` +
		`/wrapper-server-tools/ko-app/wrapper-server: no such file or directory`
	tests := map[string]struct {
		reason   string
		template podspec.Defaults
		state    string
		want     podspec.Launch
	}{
		"running": {"its node could do it", imageVolume(), `running: {}`, podspec.Launched},
		"creating": {
			"it is still starting",
			imageVolume(), `waiting: {reason: ContainerCreating}`, podspec.LaunchUnknown,
		},
		"no image": {
			"its function's image, or the wrapper server's, cannot be pulled",
			imageVolume(), `waiting: {reason: ErrImagePull}`, podspec.LaunchUnknown,
		},
		"crashed": {
			"it was started",
			imageVolume(),
			`terminated: {reason: Error, exitCode: 1, message: "cannot find /wrapper-server-tools/ko-app/wrapper-server"}`,
			podspec.LaunchUnknown,
		},
		"empty": {
			"a runtime that mounts nothing",
			imageVolume(), `terminated: {reason: StartError, exitCode: 128, message: '` + missing + `'}`,
			podspec.LaunchMissing,
		},
		"retried": {
			"the same, told by another kubelet",
			imageVolume(), `waiting: {reason: RunContainerError, message: '` + missing + `'}`, podspec.LaunchMissing,
		},
		"no source": {
			"a runtime that does not know images as sources of mounts",
			imageVolume(), `waiting: {reason: CreateContainerError, message: 'failed to mkdir "": no such file or directory'}`,
			podspec.LaunchFailed,
		},
		"copied": {
			"an init container brought it",
			defaults(), `terminated: {reason: StartError, message: '` + missing + `'}`, podspec.LaunchUnknown,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := builder().Pod(request(podspec.Default(tc.template)))
			pod.Status = observed(t, `{status: {containerStatuses: [{name: function, state: {`+tc.state+`}}]}}`).Status
			if got := podspec.LaunchOf(pod); got != tc.want {
				t.Errorf("%v, want %v: %s", got, tc.want, tc.reason)
			}
			pod.Spec.Volumes = nil
			if got := podspec.LaunchOf(pod); got != tc.want {
				t.Errorf("%v, want %v from an API server that drops the volume", got, tc.want)
			}
			pod.Annotations[podspec.AnnotationTemplateVersion] = "4711"
			if got := podspec.LaunchOf(pod); got != podspec.LaunchUnknown {
				t.Errorf("a user's template shows %v", got)
			}
		})
	}
}
