// SPDX-License-Identifier: Apache-2.0

package attribution_test

import (
	"testing"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/attribution"
)

func TestMark(t *testing.T) {
	for _, tc := range []struct{ reason, apiVersion, before, want string }{
		{"the first mark", "storage.cnrm.cloud.google.com/v1beta1", "", "krm-fn"},
		{"other values stay", "storage.cnrm.cloud.google.com/v1beta1", "zone:v1", "zone:v1,krm-fn"},
		{
			"one entry for all commands, in a fixed order", "storage.cnrm.cloud.google.com/v1beta1", "zone:v1,krm-pkg-live,x",
			"zone:v1,krm-pkg-fn-live,x",
		},
		{"twice is as once", "storage.cnrm.cloud.google.com/v1beta1", "krm-fn", "krm-fn"},
		{"other resources are not marked", "v1", "", ""},
	} {
		r := yaml.MustParse("apiVersion: " + tc.apiVersion + "\nkind: StorageBucket\nmetadata: {name: a}\n")
		const key = "cnrm.cloud.google.com/blueprint"
		if tc.before != "" {
			if err := r.PipeE(yaml.SetAnnotation(key, tc.before)); err != nil {
				t.Fatal(err)
			}
		}
		if err := attribution.Mark([]*yaml.RNode{r}); err != nil {
			t.Fatal(err)
		}
		if got := r.GetAnnotations()[key]; got != tc.want {
			t.Errorf("%q becomes %q, want %q: %s", tc.before, got, tc.want, tc.reason)
		}
	}
}
