// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestARCHITECTUREHasEveryLibrary compares its table with the directories of libs.
func TestARCHITECTUREHasEveryLibrary(t *testing.T) {
	var documented []string
	for _, r := range table(t, "ARCHITECTURE.md", "package") {
		documented = append(documented, quoted(r["package"])...)
	}
	documented = slices.DeleteFunc(documented, func(name string) bool { return name == "testing/…" })
	slices.Sort(documented)
	var packages []string
	files, err := filepath.Glob(filepath.Join(root, "libs/*/*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		packages = append(packages, filepath.Base(filepath.Dir(file)))
	}
	if diff := cmp.Diff(slices.Compact(packages), documented); diff != "" {
		t.Errorf("packages of libs (-code +ARCHITECTURE.md):\n%s", diff)
	}
}
