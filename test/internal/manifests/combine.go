package manifests

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Combine makes a kustomization of a base or an overlay, by its path below the folder
// deploy, and a component there, and returns its folder.
func Combine(t testing.TB, deploy, resource, component string) string {
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
	content := fmt.Sprintf("resources: [%s/%s]\ncomponents: [%s/components/%s]\n", up, resource, up, component)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}
