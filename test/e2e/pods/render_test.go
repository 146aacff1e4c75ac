//go:build e2e

package pods_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/testing/gobuild"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// root is the repository's, from here.
const root = "../../.."

// TestRenderIsTheSameAsWithBinaries renders the examples in pods and with the local
// binaries that function-runner's image carries, and compares the bytes.
func TestRenderIsTheSameAsWithBinaries(t *testing.T) {
	fnctl := gobuild.Program(t, filepath.Join(root, "fnctl"), ".")
	sys := newSystem(t, []string{"get"}, nil)
	binaries := sys.start(t, sys.program(t, "function-runner", 9445, nil, "--disable-runtimes=pod", "--functions=/functions", "--config=/config.yaml"))
	want := render(t, fnctl, binaries.Status.PodIP+":9445")
	eachMode(t, nil, func(t *testing.T, sys *system) {
		got := render(t, fnctl, sys.gateway)
		if len(got) != len(want) || len(want) == 0 {
			t.Errorf("%d files were rendered in pods, %d with binaries", len(got), len(want))
		}
		for path, content := range want {
			if !bytes.Equal(got[path], content) {
				t.Errorf("%s was rendered in pods as\n%s\nand with binaries as\n%s", path, got[path], content)
			}
		}
		if len(sys.functionPods(t)) == 0 {
			t.Error("there are no function pods: nothing was rendered in them")
		}
	})
}

// render renders copies of the examples, and returns all their files.
func render(t *testing.T, fnctl, gateway string) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	for _, example := range []string{"web-application", "blueprint"} {
		if err := os.CopyFS(filepath.Join(dir, example), os.DirFS(filepath.Join(root, "examples", example))); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(suite.Context(t), fnctl, "render", "--address="+gateway, filepath.Join(dir, example))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("fnctl render %s: %v\n%s", example, err, out)
		}
	}
	files := make(map[string][]byte)
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files[path], err = os.ReadFile(filepath.Join(dir, path))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
