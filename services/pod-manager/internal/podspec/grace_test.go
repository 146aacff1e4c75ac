// SPDX-License-Identifier: Apache-2.0

package podspec_test

import (
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// TestGracePeriodOutlivesEvaluations has a function with a long limit of its own: its pods are deleted while in use.
func TestGracePeriodOutlivesEvaluations(t *testing.T) {
	const text = `
apiVersion: v1
kind: Pod
spec:
  containers:
  - {name: function, command: [/wrapper-server-tools/wrapper-server]}
`
	for evaluation, want := range map[time.Duration]int64{0: 330, time.Minute: 330, 10 * time.Minute: 630} {
		template, _, err := podspec.Parse("1", map[string]string{"template": text}, podspec.Defaults{
			WrapperImage: "example.com/wrapper:v1", TerminationGracePeriod: 330 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		pod := podspec.Builder{Namespace: "fns"}.Pod(podspec.Request{
			Template: template, Name: "fn",
			Workload: podspec.Workload{
				Function: podspec.Function{Reference: "example.com/fn:v1"}, MaxEvaluationTime: evaluation,
			},
		})
		if got := *pod.Spec.TerminationGracePeriodSeconds; got != want {
			t.Errorf("with evaluations of %s, the grace period is %d s, want %d", evaluation, got, want)
		}
	}
}
