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
	for _, profile := range []string{"microservices", "function-runner"} {
		t.Run(profile, func(t *testing.T) {
			usual.clean(t)
			run := skaffold(t, root, "run", "--profile="+profile)
			if out, err := run.CombinedOutput(); err != nil {
				t.Fatalf("skaffold: %v\n%s", err, out)
			}
			usual.evaluates(t, setNamespace)
		})
	}
}

// skaffold is it with the test bed's registry, and with settings of its own, for the
// sources in a folder.
func skaffold(t *testing.T, sources, command string, args ...string) *exec.Cmd {
	t.Helper()
	path := os.Getenv(skaffoldVariable)
	if path == "" {
		t.Fatalf("set %s to skaffold's path, as `make e2e` does: `cluster tool skaffold` builds and prints it", skaffoldVariable)
	}
	open := s.Registry(t, "open")
	dir := t.TempDir()
	settings := filepath.Join(dir, "config")
	if err := os.WriteFile(settings, []byte("global: {collect-metrics: false, update-check: false, survey: {disable-prompt: true}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(suite.Context(t), path, append([]string{
		command, "--config=" + settings, "--cache-file=" + filepath.Join(dir, "cache"), "--interactive=false",
		"--default-repo=" + open.Host + "/skaffold", "--insecure-registry=" + open.Host,
	}, args...)...)
	run.Dir = sources
	run.Env = append(run.Environ(), "KO_DEFAULTBASEIMAGE="+open.Host+"/base/gateway:latest", "GOPROXY=off", "GOFLAGS=-buildvcs=false")
	return run
}
