// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Bases and Components are kustomizations in deploy/. An overlay combines a base with any number of components in any
// order, except for components that the base already contains.
var (
	Bases      = []string{"microservices", "function-runner"}
	Components = []string{
		"api-server", "dev", "node-local-dns", "pod-services", "pod-template", "porch-main",
		"private-registry", "production", "service-mesh", "tracing",
	}
	// Microservices contains components that work only with the base "microservices". FunctionRunner contains components
	// that work only with the base "function-runner".
	Microservices  = []string{"callers", "mutual-tls", "mutual-tls-secrets"}
	FunctionRunner = []string{"mutual-tls-pods"}
)

// ComponentsOf returns all components that work with a base.
func ComponentsOf(base string) []string {
	if base == "microservices" {
		return slices.Concat(Components, Microservices)
	}
	return slices.Concat(Components, FunctionRunner)
}

// Namespaces is the kustomization that creates all namespaces, as a path relative to the directory deploy.
const Namespaces = "overlays/namespaces"

// Operator is the kustomization that needs the Prometheus operator, as a path relative to the directory deploy.
const Operator = "observability/operator"

// Combinations returns the directories of all kustomizations to test, by name. It finds the kustomizations in deploy,
// except for components and Operator. It also creates a kustomization for each pair of a base and a component.
func Combinations(t testing.TB, deploy string) map[string]string {
	t.Helper()
	dirs := map[string]string{}
	err := filepath.WalkDir(deploy, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != kustomization {
			return err
		}
		name, err := filepath.Rel(deploy, filepath.Dir(path))
		if !strings.HasPrefix(name, "components/") && name != Operator {
			dirs[name] = filepath.Dir(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, base := range Bases {
		for _, component := range ComponentsOf(base) {
			dirs[base+"+"+component] = Combine(t, deploy, "base/"+base, component)
		}
	}
	return dirs
}

// block matches a YAML code block in Markdown.
var block = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// Documented returns the directories of the example overlays in the project's documents, by name. It writes each
// overlay into a separate copy of the directory deploy, so that the overlay's relative paths work.
func Documented(t testing.TB, root string) map[string]string {
	t.Helper()
	dirs := map[string]string{}
	for _, file := range []string{"README.md", "deploy/README.md", "docs/how-to.md"} {
		document, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range block.FindAllStringSubmatch(string(document), -1) {
			if !strings.Contains(match[1], "kind: Kustomization") {
				continue
			}
			dirs[fmt.Sprintf("%s %d", file, len(dirs)+1)] = OwnOverlay(t, root, match[1])
		}
	}
	if len(dirs) < 3 {
		t.Errorf("%d overlays are shown, want at least those for components, Porch and images", len(dirs))
	}
	return dirs
}

// OwnOverlay adds an overlay to a copy of the directory deploy, as a user would, and returns the overlay's
// directory.
func OwnOverlay(t testing.TB, root, content string) string {
	t.Helper()
	overlay := filepath.Join(Copy(t, filepath.Join(root, "deploy")), "overlays/own")
	if err := os.Mkdir(overlay, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(overlay, kustomization), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return overlay
}

// Copy copies the directory deploy to a temporary directory, and returns the path of the copy.
func Copy(t testing.TB, deploy string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "deploy")
	if err := os.CopyFS(dir, os.DirFS(deploy)); err != nil {
		t.Fatal(err)
	}
	return dir
}
