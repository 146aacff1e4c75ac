// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package porch_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// The namespaces of Porch, of function pods, and of packages.
const (
	system    = "porch-system"
	functions = "porch-fn-system"
	users     = "porch-users"
)

// The objects of users, and those in which Porch keeps what it knows about packages.
const (
	repositories = "repositories.config.porch.kpt.dev"
	packageRevs  = "packagerevs.config.porch.kpt.dev"
)

var s *suite.Suite

func TestMain(m *testing.M) {
	os.Exit(suite.Run(m, func(connected *suite.Suite) { s = connected }))
}

// porchVariable is the environment variable with the path of Porch's server, beside which are its
// command line and its manifests.
const porchVariable = "FNR_PORCH"

// porch returns the path of a file of Porch's.
func porch(t testing.TB, name string) string {
	t.Helper()
	path := os.Getenv(porchVariable)
	if path == "" {
		t.Fatalf("set %s to the path of Porch's server, as `make e2e` does: `cluster tool porch` builds and prints it",
			porchVariable)
	}
	return filepath.Join(filepath.Dir(path), name)
}

// runnerManifest is the file with Porch's function runner.
const runnerManifest = "manifests/2-function-runner.yaml"

// decode returns the objects of a file, with the test bed's images. The function runner is Porch's or
// ours.
func decode(t testing.TB, file string, runner suite.Version) []*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	images := strings.NewReplacer(
		"docker.io/nephio/porch-server:latest", s.Program(t, suite.Porch, "server"),
		"docker.io/nephio/porch-function-runner:latest", s.Program(t, runner, "function-runner"),
		"docker.io/nephio/porch-wrapper-server:latest", s.Program(t, runner, "wrapper-server"),
		"image: git-server", "image: "+s.Program(t, suite.Porch, "git-server"),
	)
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(images.Replace(string(content)), "\n---\n") {
		objects = append(objects, suite.Decode(t, document))
	}
	return objects
}

// install installs Porch as it is published, with its own function runner and a Git server, and removes
// all of it at the end of the test.
func install(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(porch(t, "manifests/*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("Porch has no manifests: %v", err)
	}
	var objects []*unstructured.Unstructured
	for _, file := range append(files, "testdata/git-server.yaml") {
		objects = append(objects, decode(t, file, suite.Porch)...)
	}
	onTheBed(t, objects)
	t.Cleanup(func() { remove(t, objects) })
	s.Install(suite.Context(t), t, objects...)
	kubectl(t, "wait", "--for=condition=Available", kubectlTimeout, "apiservice/v1alpha1.porch.kpt.dev")
}

// onTheBed changes as little of Deployments as the test bed needs: its open registry has no TLS, and
// two of the programs end only when they are killed.
func onTheBed(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	grace := []string{"spec", "template", "spec", "terminationGracePeriodSeconds"}
	for _, o := range objects {
		if o.GetKind() != "Deployment" {
			continue
		}
		if variable, ok := suite.InsecureRegistries[o.GetName()]; ok {
			suite.SetVariable(t, o, variable, s.Registry(t, "open").Host)
			continue
		}
		if err := unstructured.SetNestedField(o.Object, int64(1), grace...); err != nil {
			t.Fatal(err)
		}
	}
}

// useImage changes the images of Porch's function runner to ours.
func useImage(t *testing.T) {
	t.Helper()
	objects := decode(t, porch(t, runnerManifest), suite.Current)
	onTheBed(t, objects)
	s.Install(suite.Context(t), t, objects...)
}

// useOverlay applies the overlay for Porch 1.5 over Porch's function runner.
func useOverlay(t *testing.T) {
	t.Helper()
	installOurs(t, "../../../deploy/overlays/porch")
}

// installOurs installs our manifests of a directory.
func installOurs(t *testing.T, dir string) {
	t.Helper()
	objects := s.OnTheBed(t, suite.Build(t, dir))
	own := func(document string) string { return s.OwnImages(t, suite.Current, document) }
	s.Install(suite.Context(t), t, suite.Rewrite(t, objects, own)...)
}

// remove removes Porch, in the order in which each step still finds what it needs: Porch forgets the
// packages, the API server forgets Porch, and then nothing waits for Porch any more.
func remove(t *testing.T, objects []*unstructured.Unstructured) {
	ctx := suite.CleanupContext(t)
	run(ctx, t, "", "kubectl", "-n", users, "delete", repositories, "--all")
	run(ctx, t, "", "kubectl", "-n", users, "wait", "--for=delete", kubectlTimeout, packageRevs, "--all")
	run(ctx, t, "", "kubectl", "delete", "apiservice", "v1alpha1.porch.kpt.dev")
	run(ctx, t, "", "kubectl", "delete", "validatingwebhookconfiguration", "packagerev-deletion-validating-webhook")
	// RemoveNamespace gives pods more time to end than these have.
	run(ctx, t, "", "kubectl", "-n", system, "delete", "deployment", "porch-server", "--cascade=foreground")
	run(ctx, t, "", "kubectl", "-n", users, "delete", "deployment", "git-server", "--cascade=foreground")
	s.RemoveNamespace(t, system)
	s.RemoveNamespace(t, functions)
	// A Porch that failed has left some. Nothing else removes their finalizers.
	for _, left := range strings.Fields(run(ctx, t, "", "kubectl", "-n", users, "get", packageRevs, "-o", "name")) {
		run(ctx, t, "", "kubectl", "-n", users, "patch", left, "--type=merge", `--patch={"metadata":{"finalizers":null}}`)
	}
	s.RemoveNamespace(t, users)
	var rest []string
	for _, o := range objects {
		document, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Error(err)
			continue
		}
		rest = append(rest, string(document))
	}
	run(ctx, t, strings.Join(rest, "---\n"), "kubectl", "delete", "--ignore-not-found", "-f", "-")
}
