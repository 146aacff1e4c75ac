//go:build e2e

package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// skaffoldVariable is the environment variable with the path of skaffold.
const skaffoldVariable = "FNR_SKAFFOLD"

// TestSkaffoldRun builds images from the sources and deploys them, as a developer does.
func TestSkaffoldRun(t *testing.T) {
	for _, profile := range []string{"function-runner"} {
		t.Run(profile, func(t *testing.T) {
			usual.clean(t)
			skaffold(t, "run", "--profile="+profile)
			usual.evaluates(t, setNamespace)
		})
	}
}

// skaffold runs it with the test bed's registry, and with settings of its own.
func skaffold(t *testing.T, command string, args ...string) {
	t.Helper()
	path := os.Getenv(skaffoldVariable)
	if path == "" || s.Bed == nil {
		t.Fatalf("set %s to skaffold's path, as `make e2e` does: `cluster tool skaffold` builds and prints it", skaffoldVariable)
	}
	open, err := s.Bed.Registry("open")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	settings := filepath.Join(dir, "config")
	if err := os.WriteFile(settings, []byte("global: {collect-metrics: false, update-check: false, survey: {disable-prompt: true}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(suite.Context(t), path, append([]string{
		command, "--config=" + settings, "--cache-file=" + filepath.Join(dir, "cache"), "--interactive=false",
		"--default-repo=" + open.Host + "/skaffold", "--insecure-registry=" + open.Host,
	}, args...)...)
	run.Dir = root
	run.Env = append(run.Environ(), "KO_DEFAULTBASEIMAGE="+open.Host+"/base/gateway:latest", "GOPROXY=off", "GOFLAGS=-buildvcs=false")
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("skaffold %s: %v\n%s", command, err, out)
	}
}
