//go:build e2e

package deploy_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// skaffoldVariable is the environment variable with the path of skaffold.
const skaffoldVariable = "FNR_SKAFFOLD"

// skaffoldPatience is for building, deploying and looking on.
const skaffoldPatience = 5 * time.Minute

// TestSkaffold is about a developer's two loops. They take turns: each has the usual
// place.
func TestSkaffold(t *testing.T) {
	t.Parallel() // with whatever else has namespaces of its own
	t.Run("run", skaffoldRuns)
	t.Run("dev", skaffoldNoticesAChange)
}

// skaffoldRuns builds images from the sources and deploys them, with each profile.
func skaffoldRuns(t *testing.T) {
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
	ctx, cancel := context.WithTimeout(t.Context(), skaffoldPatience)
	t.Cleanup(cancel)
	run := exec.CommandContext(ctx, path, append([]string{
		command, "--config=" + settings, "--cache-file=" + filepath.Join(dir, "cache"), "--interactive=false",
		"--default-repo=" + open.Host + "/skaffold", "--insecure-registry=" + open.Host,
	}, args...)...)
	run.Dir = sources
	run.Env = append(run.Environ(), "KO_DEFAULTBASEIMAGE="+open.Host+"/base/gateway:latest", "GOPROXY=off", "GOFLAGS="+os.Getenv("GOFLAGS")+" -buildvcs=false")
	return run
}
