// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/krm-function-runner/function-runner/test/bed"
)

// TestPackagesKeepEvidenceApart keeps the logs of the cluster's components in one directory from
// two packages. The evidence of the first package stays unchanged.
func TestPackagesKeepEvidenceApart(t *testing.T) {
	evidence, logs, sources := t.TempDir(), t.TempDir(), t.TempDir()
	for _, name := range []string{"pods", "deploy"} {
		if err := os.WriteFile(filepath.Join(logs, "kubelet.log"), []byte("when "+name+" failed"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(sources, name), 0o700); err != nil {
			t.Fatal(err)
		}
		t.Chdir(filepath.Join(sources, name))
		own, err := packageDir(evidence)
		if err != nil {
			t.Fatal(err)
		}
		s := &Suite{Bed: &bed.Info{Logs: logs}, evidence: own}
		s.collectComponents()
	}
	for _, name := range []string{"pods", "deploy"} {
		kept, err := os.ReadFile(filepath.Join(evidence, name, "components", "kubelet.log"))
		if want := "when " + name + " failed"; string(kept) != want {
			t.Errorf("of %s there is %q, %v, want %q", name, kept, err, want)
		}
	}
}
