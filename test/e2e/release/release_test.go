// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package release_test

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// The names that docs/install.md uses, and the chart's default namespace of function pods.
const (
	system, functions = "function-runner", "function-pods"
	// setNamespace is a function that the gateway has as a local binary.
	setNamespace = "ghcr.io/kptdev/krm-functions-catalog/set-namespace:v0.4.5"
	callers      = 8
	pause        = 300 * time.Millisecond
)

var s *suite.Suite

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(suite.Run(m, func(connected *suite.Suite) { s = connected }))
}

// TestChartIsInstalledUpgradedAndRolledBack runs the commands of docs/install.md from its third section on. Callers
// evaluate during the upgrade and the rollback.
func TestChartIsInstalledUpgradedAndRolledBack(t *testing.T) {
	t.Cleanup(func() {
		ctx := suite.CleanupContext(t)
		for _, namespace := range []string{system, functions} {
			if _, err := s.Client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{}); err == nil {
				s.RemoveNamespace(t, namespace)
			}
		}
	})
	steps := readSteps(t, "../../../docs/install.md")
	host := s.Registry(t, "open").Host
	follow := func(block string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", block)
		command.Env = append(command.Environ(), "CHART=../../../deploy/chart", "REGISTRY="+host+"/programs", "TAG=latest",
			"HOME="+t.TempDir())
		out, err := command.CombinedOutput()
		t.Logf("%s\n%s", block, out)
		if err != nil {
			t.Fatalf("a command of docs/install.md fails: %v", err)
		}
	}

	follow(steps["3"][0])
	// Only on the test bed: its registry has no TLS, and an address of a private network.
	suite.Kubectl(t, "", "-n", system, "set", "env", "deployment/function-runner-image-resolver",
		"FNR_INSECURE_REGISTRIES="+host)
	s.AwaitRollout(suite.Context(t), t, system, "function-runner-image-resolver")
	images := []string{setNamespace, host + "/krm-functions-catalog/set-namespace:v0.4.5"}
	for _, image := range images {
		if err := suite.SetNamespace(suite.Context(t), connect(t), image, grpc.WaitForReady(true)); err != nil {
			t.Fatal(err)
		}
	}

	conns := make([]*grpc.ClientConn, callers)
	for i := range conns {
		conns[i] = connect(t)
	}
	evaluations, err := suite.UnderLoad(t.Context(), callers, pause, func(ctx context.Context, number int) error {
		return suite.SetNamespace(ctx, conns[number], images[number%len(images)])
	}, func() {
		// A changed setting replaces the pods, since the test's two versions have the same images.
		follow(strings.TrimSpace(steps["4"][0]) + " --set programs.gateway.settings.FNR_TELEMETRY_LOG_VERBOSITY=3")
		follow(steps["4"][1])
	})
	t.Logf("%d evaluations during an upgrade and a rollback", evaluations)
	if err != nil {
		t.Errorf("a caller failed: %v", err)
	}

	follow(steps["5"][0])
	deployments, err := s.Client.AppsV1().Deployments(system).List(suite.Context(t), metav1.ListOptions{})
	if err != nil || len(deployments.Items) > 0 {
		t.Errorf("after the uninstallation there are %d Deployments (%v)", len(deployments.Items), err)
	}
}

// readSteps returns the commands of a document by the number of their section: its blocks of the language sh.
func readSteps(t *testing.T, path string) map[string][]string {
	t.Helper()
	content, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, section := range regexp.MustCompile(`(?m)^## `).Split(string(content), -1)[1:] {
		number, _, _ := strings.Cut(section, ". ")
		for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(section, -1) {
			found[number] = append(found[number], block[1])
		}
	}
	if len(found["3"]) != 1 || len(found["4"]) != 2 || len(found["5"]) != 1 {
		t.Fatalf("%s has the commands %v, want the commands of this test", path, found)
	}
	return found
}

// connect returns a connection to the gateway, at the address of its Service.
func connect(t *testing.T) *grpc.ClientConn {
	t.Helper()
	return suite.Connect(t, s.ServiceAddress(suite.Context(t), t, system, "function-runner", "9445"))
}
