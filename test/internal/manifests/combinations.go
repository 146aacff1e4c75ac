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

// Bases and Components make up overlays: components that bases do not have already, in any number
// and order.
var (
	Bases      = []string{"microservices", "function-runner"}
	Components = []string{
		"api-server", "dev", "node-local-dns", "pod-services", "pod-template", "porch-main",
		"private-registry", "production", "service-mesh", "tracing",
	}
	// Microservices and FunctionRunner are components that only the base of that name has a use for.
	Microservices  = []string{"callers", "mutual-tls", "mutual-tls-secrets"}
	FunctionRunner = []string{"mutual-tls-pods"}
)

// ComponentsOf returns the components for a base.
func ComponentsOf(base string) []string {
	if base == "microservices" {
		return slices.Concat(Components, Microservices)
	}
	return slices.Concat(Components, FunctionRunner)
}

// Namespaces is the kustomization, below the directory deploy, that creates the namespaces for all other
// kustomizations.
const Namespaces = "overlays/namespaces"

// Operator is the kustomization, below the directory deploy, with objects that only a cluster with
// Prometheus' operator accepts.
const Operator = "observability/operator"

// Combinations returns the directories of kustomizations to test by their names: all of those below
// the directory deploy but Operator, and each component on each base.
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

// block is a block of YAML in a document.
var block = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// Documented returns the directories of the overlays in the documents, by their names, each next to a copy of the
// repository's overlays.
func Documented(t testing.TB, root string) map[string]string {
	t.Helper()
	dirs := map[string]string{}
	for _, file := range []string{"README.md", "deploy/README.md"} {
		document, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range block.FindAllStringSubmatch(string(document), -1) {
			if !strings.Contains(match[1], "kind: Kustomization") {
				continue
			}
			dirs[fmt.Sprintf("%s %d", file, len(dirs)+1)] = ownOverlay(t, root, match[1])
		}
	}
	if len(dirs) < 3 {
		t.Errorf("%d overlays are shown, want at least those for components, Porch and images", len(dirs))
	}
	return dirs
}

// ownOverlay returns the directory of an overlay, next to a copy of the repository's overlays.
func ownOverlay(t testing.TB, root, content string) string {
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

// Copy copies the directory deploy into a temporary directory of the same name, and returns its path.
func Copy(t testing.TB, deploy string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "deploy")
	if err := os.CopyFS(dir, os.DirFS(deploy)); err != nil {
		t.Fatal(err)
	}
	return dir
}
