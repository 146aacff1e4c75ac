// SPDX-License-Identifier: Apache-2.0

//go:build unix

package golden_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/fnctl/internal/command"
	"github.com/krm-function-runner/function-runner/fnctl/internal/golden"
)

// secret stands for a file of the user that a test from elsewhere must not make fnctl read, print or overwrite.
const secret = "items: [{message: hunter2}]\n"

// TestExpectedLinksStayInside runs tests whose expected files are links to a secret, a missing file, a device and a
// resource, outside of the directory .expected. The tests fail, and nothing is read or written through the links.
func TestExpectedLinksStayInside(t *testing.T) {
	for _, name := range []string{"config.yaml", "diff.patch", "results.yaml"} {
		for _, target := range []string{"../../secret", "../../missing", "/dev/zero", "../a.yaml"} {
			for _, flags := range [][]string{nil, {"--update"}} {
				t.Run(strings.Join(append([]string{name, target}, flags...), " "), func(t *testing.T) {
					dir := writeTest(t, map[string]string{"../secret": secret, ".expected/config.yaml": "image: x\n"})
					link := filepath.Join(dir, ".expected", name)
					if err := os.RemoveAll(link); err != nil {
						t.Fatal(err)
					}
					if err := os.Symlink(target, link); err != nil {
						t.Fatal(err)
					}
					out, err := runTests(t, dir, changeFile, flags...)
					if err == nil || !strings.Contains(out, name+" is a link that leaves the package") ||
						strings.Contains(out, "hunter2") {
						t.Errorf("fnctl test = %v, %s, want an error about the link, without the secret", err, out)
					}
					assertContent(t, filepath.Join(dir, "../secret"), secret)
					assertContent(t, filepath.Join(dir, "a.yaml"), "kind: A\n")
					if _, err := os.Lstat(filepath.Join(dir, "../missing")); err == nil {
						t.Error("a file outside of the package was created")
					}
				})
			}
		}
	}
}

// TestConfigurationStaysInside runs tests whose function would get a file outside of the package as its configuration.
func TestConfigurationStaysInside(t *testing.T) {
	for _, name := range []string{"../secret", "../../../../../../../../etc/passwd", "/etc/passwd"} {
		dir := writeTest(t, map[string]string{".expected/config.yaml": "image: x\nfnConfig: " + name + "\n"})
		out, err := runTests(t, dir, func(_, _ string) error {
			t.Errorf("fnConfig %s: the function ran", name)
			return nil
		})
		if want := "fnConfig " + name + " is not inside of the package"; err == nil || !strings.Contains(out, want) {
			t.Errorf("fnctl test = %v, %s, want %q", err, out, want)
		}
	}
}

// TestLargePackagesAreRejected runs tests with large files. Only files that functions see count, and expected files.
func TestLargePackagesAreRejected(t *testing.T) {
	for name, want := range map[string]string{
		"large.bin": "has more than 256 MiB", ".git/large.bin": "1 passed", ".expected/large.bin": "1 passed",
		".expected/diff.patch": "diff.patch has more than 64 MiB",
	} {
		dir := writeTest(t, map[string]string{".expected/config.yaml": "image: x\n", name: ""})
		if err := os.Truncate(filepath.Join(dir, name), 300<<20); err != nil {
			t.Fatal(err)
		}
		if out, _ := runTests(t, dir, changeNothing); !strings.Contains(out, want) {
			t.Errorf("fnctl test with %s: %s, want %q", name, out, want)
		}
	}
}

// TestUpdateReplacesExpectations updates a test whose function changes files and then no longer changes them.
func TestUpdateReplacesExpectations(t *testing.T) {
	dir := writeTest(t, map[string]string{
		".expected/config.yaml": "image: x\n", ".expected/diff.patch": "old\n", ".expected/results.yaml": "old\n",
	})
	patch, results := filepath.Join(dir, ".expected", "diff.patch"), filepath.Join(dir, ".expected", "results.yaml")
	if out, err := runTests(t, dir, changeFile, "--update"); err != nil {
		t.Fatalf("fnctl test --update = %v, %s", err, out)
	}
	assertContent(t, patch, "diff a/a.yaml b/a.yaml\n--- a/a.yaml\n+++ b/a.yaml\n@@ -1,1 +1,1 @@\n-kind: A\n+kind: B\n")
	assertContent(t, results, "items: []\n")
	if out, err := runTests(t, dir, changeNothing, "--update"); err != nil {
		t.Fatalf("fnctl test --update = %v, %s", err, out)
	}
	if _, err := os.Lstat(patch); err == nil {
		t.Error("a function that changes nothing left diff.patch in place")
	}
	assertContent(t, results, "")
}

// changeFile is a function that changes the package's only file and writes results.
func changeFile(dir, results string) error {
	if err := os.MkdirAll(results, 0o750); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(results, "results.yaml"), []byte("items: []\n"), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "a.yaml"), []byte("kind: B\n"), 0o600)
}

func changeNothing(_, results string) error { return os.RemoveAll(results) }

// writeTest writes a package with a resource and the given files, and returns its directory.
func writeTest(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "package")
	files["a.yaml"] = "kind: A\n"
	for name, content := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// runTests runs fnctl test with a function that gets the directories of the package's copy and of the results.
func runTests(t *testing.T, dir string, function func(dir, results string) error, flags ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	env := command.Environment{Stdout: &out, Stderr: &out}
	cmd := golden.NewCommand(env, func(_ context.Context, _ command.Environment, args []string) int {
		if err := function(args[1], args[3]); err != nil {
			t.Error(err)
		}
		return command.ExitDone
	})
	cmd.SilenceUsage = true
	cmd.SilenceErrors = true
	cmd.SetArgs(append([]string{dir}, flags...))
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func assertContent(t *testing.T, name, want string) {
	t.Helper()
	if got, err := os.ReadFile(name); err != nil || string(got) != want {
		t.Errorf("%s = %q, %v, want %q", filepath.Base(name), got, err, want)
	}
}
