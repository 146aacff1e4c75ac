// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// skaffoldVariable is the environment variable with the path of skaffold.
const skaffoldVariable = "FNR_SKAFFOLD"

// skaffoldTimeout limits building, deploying and watching. On a busy machine, building alone takes minutes.
const skaffoldTimeout = 20 * time.Minute

// TestSkaffold tests a developer's two loops. They run one after the other: each uses the usual
// namespaces. As it takes longest, it has to be among the first: Go starts tests in the order of their files.
func TestSkaffold(t *testing.T) {
	t.Parallel() // with other tests in their own namespaces
	t.Run("run", skaffoldRuns)
	t.Run("dev", skaffoldNoticesAChange)
}

// skaffoldRuns builds images from the sources and deploys them, with each profile. Function pods
// get the wrapper server that was built in the same run.
func skaffoldRuns(t *testing.T) {
	for profile, resolver := range map[string]string{
		"microservices":   "image-resolver",
		"function-runner": "function-runner",
	} {
		t.Run(profile, func(t *testing.T) {
			usual.clean(t)
			run := skaffold(t, root, "run", "--profile="+profile)
			if out, err := run.CombinedOutput(); err != nil {
				t.Fatalf("skaffold: %v\n%s", err, out)
			}
			usual.evaluates(t, setNamespace)
			knowOpenRegistry(t, resolver)
			usual.evaluates(t, inPod(t))
			checkWrapper(t, s.Registry(t, "open").Host+"/skaffold/")
		})
	}
}

// knowOpenRegistry configures a Deployment to use the test bed's open registry without TLS.
func knowOpenRegistry(t *testing.T, resolver string) {
	t.Helper()
	const change = `{"spec":{"template":{"spec":{"containers":[{"name":%q,"env":[{"name":%q,"value":%q}]}]}}}}`
	patch := fmt.Appendf(nil, change, resolver, suite.InsecureRegistries[resolver], s.Registry(t, "open").Host)
	ctx, before := suite.Context(t), podsOf(t, resolver)
	if _, err := s.Client.AppsV1().Deployments(usual.system).Patch(ctx, resolver, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	s.AwaitRollout(ctx, t, usual.system, resolver)
	for pod := range before { // a terminating pod still answers for a while
		s.AwaitGone(ctx, t, usual.system, pod)
	}
}

// checkWrapper checks that function pods have the wrapper server of an image with the given prefix.
func checkWrapper(t *testing.T, prefix string) {
	t.Helper()
	pods, err := s.Client.CoreV1().Pods(usual.functions).List(suite.Context(t), metav1.ListOptions{})
	if err != nil || len(pods.Items) == 0 {
		t.Fatalf("there are no function pods: %v", err)
	}
	for _, pod := range pods.Items {
		spec, err := json.Marshal(pod.Spec)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(spec), `"`+prefix) || strings.Contains(string(spec), `"ghcr.io/`) {
			t.Errorf("pod %s has no wrapper server of %s: %s", pod.Name, prefix, spec)
		}
	}
}

// skaffold returns the command with the test bed's registry, and with separate settings, for the
// sources in a directory.
func skaffold(t *testing.T, sources, command string, args ...string) *exec.Cmd {
	t.Helper()
	path := os.Getenv(skaffoldVariable)
	if path == "" {
		t.Fatalf("set %s to skaffold's path, as `make e2e` does: `cluster tool skaffold` builds and prints it",
			skaffoldVariable)
	}
	open := s.Registry(t, "open")
	dir := t.TempDir()
	settings := filepath.Join(dir, "config")
	content := "global: {collect-metrics: false, update-check: false, survey: {disable-prompt: true}}\n"
	if err := os.WriteFile(settings, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), skaffoldTimeout)
	t.Cleanup(cancel)
	run := exec.CommandContext(ctx, path, append([]string{
		command, "--config=" + settings, "--cache-file=" + filepath.Join(dir, "cache"), "--interactive=false",
		"--default-repo=" + open.Host + "/skaffold", "--insecure-registry=" + open.Host,
	}, args...)...)
	run.Dir = sources
	run.Env = append(run.Environ(), "KO_DEFAULTBASEIMAGE="+open.Host+"/base/gateway:latest", "GOPROXY=off",
		"GOFLAGS="+os.Getenv("GOFLAGS")+" -buildvcs=false")
	return run
}
