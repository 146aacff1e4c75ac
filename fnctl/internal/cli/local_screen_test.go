// SPDX-License-Identifier: Apache-2.0

//go:build tmux

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/services/function-runner/localrunner/localrunnertest"
)

// TestScreensOfDoc shows the help of an image on a terminal, where lines about the start are replaced.
func TestScreensOfDoc(t *testing.T) {
	registry := localrunnertest.Open(t)
	registry.Push(t, "fn/help:v1", "help=stdout", "replaced")
	env := []string{
		"FNR_INSECURE_REGISTRIES=" + registry.Host, "NO_COLOR=1", "PATH=" + os.Getenv("PATH"), //nolint:forbidigo // fnctl's
		"FNR_SANDBOX_STORE=" + filepath.Join(localrunnertest.SharedDir(t), "images"),
	}
	doc := "fnctl doc --local --image " + registry.Host + "/fn/help:v1"
	screen := open(t, t.TempDir(), 80, 24, env, doc).await("status 0")
	if !strings.HasPrefix(screen, "Sandboxes by ") ||
		!strings.HasSuffix(strings.TrimSpace(screen), "\nUsage: the help of testfn\n\nstatus 0") {
		t.Errorf("the screen is\n%s", screen)
	}
}
