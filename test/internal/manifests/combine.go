// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const kustomization = "kustomization.yaml"

// Combine creates a kustomization of a base or an overlay with additional components, and returns its directory.
// resource is the path of the base or overlay, relative to deploy.
func Combine(t testing.TB, deploy, resource string, components ...string) string {
	t.Helper()
	dir := t.TempDir()
	deploy, err := filepath.Abs(deploy)
	if err != nil {
		t.Fatal(err)
	}
	up, err := filepath.Rel(dir, deploy)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, component := range components {
		paths = append(paths, up+"/components/"+component)
	}
	content := fmt.Sprintf("resources: [%s/%s]\ncomponents: [%s]\n", up, resource, strings.Join(paths, ", "))
	if err := os.WriteFile(filepath.Join(dir, kustomization), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}
