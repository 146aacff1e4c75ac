// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kube"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

func TestHasImageVolumes(t *testing.T) {
	forbidden := apierrors.NewForbidden(pods, "", errors.New("exceeded quota"))
	tests := []struct {
		name   string
		drops  bool  // the API server drops the field
		err    error // it refuses the pod
		minor  string
		want   bool
		fails  string
		reason string
	}{
		{
			name: "keeps it", minor: "33", want: true,
			reason: "a server that keeps the field supports it, whatever its version",
		},
		{name: "drops it", drops: true, minor: "36", reason: "the feature gate is off"},
		{name: "quota, new", err: forbidden, minor: "35", want: true, reason: "a refused pod says nothing about volumes, and its version does"},
		{name: "quota, old", err: forbidden, minor: "34", reason: "it had to be switched on"},
		{name: "quota, suffix", err: forbidden, minor: "35+", want: true, reason: "some distributions write it so"},
		{name: "quota, odd", err: forbidden, minor: "new", fails: "set the launcher", reason: "nothing follows from it"},
		{name: "away", err: errGone, fails: "connection refused", reason: "no attempt was answered"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := client()
				c.Discovery().(*fakediscovery.FakeDiscovery).FakedServerVersion = &version.Info{Major: "1", Minor: tc.minor}
				c.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
					create := a.(clienttesting.CreateActionImpl)
					pod := create.GetObject().(*corev1.Pod).DeepCopy()
					if len(create.CreateOptions.DryRun) != 1 {
						t.Error("a pod was created in earnest")
					}
					for i := range pod.Spec.Volumes {
						if tc.drops {
							pod.Spec.Volumes[i].Image = nil
						}
					}
					return true, pod, tc.err
				})
				builder := podspec.Builder{Namespace: namespace, MaxMessageBytes: 1 << 20}
				can, err := kube.HasImageVolumes(t.Context(), c, builder, podspec.Defaults{WrapperImage: "example.com/wrapper-server:v1"})
				if can != tc.want || (err == nil) != (tc.fails == "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("got %t, %v: want %t, %q: %s", can, err, tc.want, tc.fails, tc.reason)
				}
			})
		})
	}
}
