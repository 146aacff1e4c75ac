// SPDX-License-Identifier: Apache-2.0

package imagestore_test

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/imagestore"
)

// TestSandboxesEnterTheStore opens a store for sandboxes, which run as another user than root, in
// directories that do not exist yet, and again when that user cannot enter one of them.
func TestSandboxesEnterTheStore(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // only its owner may enter it
		t.Fatal(err)
	}
	above := filepath.Join(dir, "function-runner")
	cfg := imagestore.Config{Dir: filepath.Join(above, "images"), Group: cmp.Or(os.Getgid(), 65534)}
	store, err := imagestore.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	store.Close()
	if err := os.Chmod(above, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := imagestore.Open(cfg); err == nil || !strings.Contains(err.Error(), "cannot enter "+above) {
		t.Errorf("got %v", err)
	}
}
