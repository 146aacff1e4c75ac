// SPDX-License-Identifier: Apache-2.0

package component

import "testing"

const publishedMod = `module k8s.io/kubernetes

go 1.26.0

require (
	github.com/spf13/cobra v1.10.2
	k8s.io/api v0.0.0
	k8s.io/klog/v2 v2.140.0
	k8s.io/kubelet v0.0.0
)
`

func TestKubernetesModReplacesWhatWasNeverPublished(t *testing.T) {
	const want = `module kube

go 1.26.0

require k8s.io/kubernetes v1.37.2

replace k8s.io/api => k8s.io/api v0.37.2

replace k8s.io/kubelet => k8s.io/kubelet v0.37.2
`
	got, err := kubernetesMod("v1.37.2", []byte(publishedMod))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("go.mod:\n%s\nwant:\n%s", got, want)
	}
}
