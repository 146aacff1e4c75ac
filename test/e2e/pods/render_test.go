// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package pods_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/krm-function-runner/function-runner/libs/testing/gobuild"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// root is the repository's root, relative to this directory.
const root = "../../.."

// examples are the packages of examples/, with the exit codes of rendering them.
var examples = map[string]int{"web-application": 0, "blueprint": 0, "policy": 1}

// rendering is the result of rendering the examples: their files, and fnctl's output for each.
type rendering struct {
	files, texts map[string]string
}

// TestRenderIsTheSameAsWithBinaries renders the examples in pods and with the local binaries in
// function-runner's image, and compares the bytes of the files and the texts for users.
func TestRenderIsTheSameAsWithBinaries(t *testing.T) {
	fnctl := gobuild.Program(t, filepath.Join(root, "fnctl"), ".")
	sys := newSystem(t, []string{"get"}, nil)
	binaries := sys.start(t, sys.program(t, "function-runner", 9445, nil, "--disable-runtimes=pod",
		"--functions=/functions", "--config=/config.yaml"))
	want := render(t, fnctl, binaries.Status.PodIP+":9445")
	eachMode(t, nil, func(t *testing.T, sys *system) {
		got := render(t, fnctl, sys.gateway)
		if diff := cmp.Diff(want.files, got.files); diff != "" {
			t.Errorf("the files of binaries (-) and of pods (+) differ:\n%s", diff)
		}
		if diff := cmp.Diff(want.texts, got.texts); diff != "" {
			t.Errorf("the texts about binaries (-) and about pods (+) differ:\n%s", diff)
		}
		for _, function := range []string{"apply-replacements", "apply-setters", "set-namespace", "starlark"} {
			if !slices.ContainsFunc(names(sys.functionPods(t)), func(
				pod string,
			) bool {
				return strings.HasPrefix(pod, function)
			}) {
				t.Errorf("%s has no pod: it did not run in one", function)
			}
		}
	})
}

// render renders copies of the examples.
func render(t *testing.T, fnctl, gateway string) rendering {
	t.Helper()
	dir, texts := t.TempDir(), make(map[string]string)
	for example, code := range examples {
		if err := os.CopyFS(filepath.Join(dir, example), os.DirFS(filepath.Join(root, "examples", example))); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(suite.Context(t), fnctl, "render", "--address="+gateway, example)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != code {
			t.Fatalf("fnctl render %s: %v, want exit code %d\n%s", example, err, code, out)
		}
		texts[example] = transient.ReplaceAllString(string(out), "")
		if code == 0 {
			continue
		}
		if !strings.Contains(texts[example], "container exporter of Deployment reports has no memory limit") {
			t.Errorf("%s failed for another reason:\n%s", example, out)
		}
		before, after := files(t, filepath.Join(root, "examples", example)), files(t, filepath.Join(dir, example))
		if !strings.Contains(after["Kptfile"], "reason: RenderFailed") {
			t.Errorf("the status of %s is not that it failed:\n%s", example, after["Kptfile"])
		}
		delete(before, "Kptfile")
		delete(after, "Kptfile")
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("%s failed and was changed nevertheless:\n%s", example, diff)
		}
	}
	return rendering{files: files(t, dir), texts: texts}
}

// transient matches fnctl's texts about time: the time of a function, and what it waited for in the
// meantime.
var transient = regexp.MustCompile(`(?m) [0-9.µmsh]+$|^    … .*\n`)

// files returns all files of a directory.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := make(map[string]string)
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, path))
		found[path] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Fatalf("there are no files in %s", dir)
	}
	return found
}
