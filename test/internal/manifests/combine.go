package manifests

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Combine makes a kustomization of a base and a component of a folder with both, and
// returns its folder.
func Combine(t testing.TB, deploy, base, component string) string {
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
	content := fmt.Sprintf("resources: [%s/base/%s]\ncomponents: [%s/components/%s]\n", up, base, up, component)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}
