// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/command"
	"github.com/krm-function-runner/function-runner/fnctl/internal/diff"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
)

// Names of the directory with a test's expected outcome, and of the files in it. kpt's tests use the same names.
const (
	expectedDir = ".expected"
	patchFile   = "diff.patch"
	resultsFile = "results.yaml"
)

// Types of tests, named after the fnctl command that a test runs.
const (
	renderTest = "render"
	evalTest   = "eval"
)

// testConfig contains the fields of a test's file config.yaml, except the fields that only kpt uses.
type testConfig struct {
	TestType      string            `yaml:"testType"`
	ExitCode      int               `yaml:"exitCode"`
	StdErr        string            `yaml:"stdErr"`
	Skip          bool              `yaml:"skip"`
	NonIdempotent bool              `yaml:"nonIdempotent"`
	Image         string            `yaml:"image"`
	ExecPath      string            `yaml:"execPath"`
	Args          map[string]string `yaml:"args"`
	FnConfig      string            `yaml:"fnConfig"`
}

// testCase is a package with its expected changes and results, for fnctl test.
type testCase struct {
	dir    string
	config testConfig
}

// readTestCase reads the configuration of the test in a directory.
func readTestCase(dir string) (*testCase, error) {
	c := &testCase{dir: dir}
	data, err := c.readExpected("config.yaml")
	if err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal(data, &c.config); err != nil {
		return nil, fmt.Errorf("%s/config.yaml: %w", expectedDir, err)
	}
	if c.config.TestType == "" {
		c.config.TestType = renderTest
		if c.config.Image != "" || c.config.ExecPath != "" {
			c.config.TestType = evalTest
		}
	}
	if c.config.TestType != renderTest && c.config.TestType != evalTest {
		return nil, fmt.Errorf("%s/config.yaml: testType must be eval or render, got %q", expectedDir, c.config.TestType)
	}
	return c, nil
}

// readExpected returns the content of a file of the directory .expected, or nil if the file does not exist. It rejects
// links that leave this directory, because the test may be from an untrusted source.
func (c *testCase) readExpected(name string) ([]byte, error) {
	data, err := pkgtree.ReadInside(filepath.Join(c.dir, expectedDir), name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// skipReason returns the reason why fnctl test skips the test. It is empty if the test runs.
func (c *testCase) skipReason() string {
	for _, script := range []string{"exec.sh", "setup.sh"} {
		if _, err := os.Lstat(filepath.Join(c.dir, expectedDir, script)); err == nil {
			return "it runs a script of its own, " + script
		}
	}
	if c.config.Skip {
		return "its configuration says so"
	}
	return ""
}

// commandLine returns the arguments of fnctl render or fnctl eval that run the test on dir, a copy of its package.
// The command writes results.yaml to the directory results.
func (c *testCase) commandLine(dir, results string, flags []string, allowExec bool) ([]string, error) {
	args := slices.Concat([]string{c.config.TestType, dir, "--results-dir", results}, flags)
	if c.config.TestType == renderTest {
		return append(args, "--no-status", fmt.Sprintf("--allow-exec=%t", allowExec)), nil
	}
	if c.config.ExecPath != "" {
		if !allowExec {
			return nil, fmt.Errorf("execPath %s is a program of this machine: if you trust the test, permit it by --allow-exec",
				c.config.ExecPath)
		}
		program, err := filepath.Abs(filepath.Join(c.dir, filepath.FromSlash(c.config.ExecPath)))
		if err != nil {
			return nil, err
		}
		args = append(args, "--exec", "'"+program+"'")
	} else {
		args = append(args, "--image", c.config.Image)
	}
	if c.config.FnConfig != "" {
		name := filepath.FromSlash(c.config.FnConfig)
		if !filepath.IsLocal(name) {
			return nil, fmt.Errorf("fnConfig %s is not inside of the package: write a path relative to the test's directory",
				c.config.FnConfig)
		}
		args = append(args, "--fn-config", filepath.Join(dir, name))
	}
	if len(c.config.Args) > 0 {
		args = append(args, "--")
		for _, key := range slices.Sorted(maps.Keys(c.config.Args)) {
			args = append(args, key+"="+c.config.Args[key])
		}
	}
	return args, nil
}

// testRun contains the files, the results, the output and the exit code of a test's command.
type testRun struct {
	before, after map[string][]byte
	results       []byte
	stderr        string
	code          int
}

// run runs the test on a copy of the package. It compares the outcome with the expected outcome. It then repeats the
// command on the command's own output and expects the same outcome, because functions must be idempotent. With
// --update, it instead stores the outcome as the expected outcome.
func (c *testCase) run(ctx context.Context, test *testCommand, flags []string) error {
	scratch, err := os.MkdirTemp("", "fnctl-test-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	named, err := filepath.Abs(c.dir) // if c.dir is . or .., the copy still needs a name
	if err != nil {
		return err
	}
	dir, results := filepath.Join(scratch, "package", filepath.Base(named)), filepath.Join(scratch, "results")
	if err := os.CopyFS(dir, &sourceFS{FS: os.DirFS(c.dir), dir: c.dir}); err != nil {
		return err
	}
	args, err := c.commandLine(dir, results, flags, test.allowExec)
	if err != nil {
		return err
	}
	r := testRun{}
	if r.before, err = readFiles(dir); err != nil {
		return err
	}
	for range 2 {
		var stderr bytes.Buffer
		env := test.env
		env.Stdin, env.Stdout, env.Stderr = &bytes.Buffer{}, &stderr, &stderr
		r.code = test.fnctl(ctx, env, args)
		r.stderr = stderr.String()
		if r.after, err = readFiles(dir); err != nil {
			return err
		}
		r.results, _ = os.ReadFile(filepath.Join(results, resultsFile)) // the file is missing if nothing ran
		if err := c.compareOutcome(ctx, r, test.update); err != nil || test.update || c.config.NonIdempotent || r.code != 0 {
			return err
		}
	}
	return nil
}

func (c *testCase) compareOutcome(ctx context.Context, r testRun, update bool) error {
	wanted := command.ExitDone
	if c.config.ExitCode != 0 {
		wanted = command.ExitFunction
	}
	if r.code != wanted {
		return fmt.Errorf("exit code %d, want %d\n%s", r.code, c.config.ExitCode, r.stderr)
	}
	if want := strings.Fields(c.config.StdErr); !strings.Contains(strings.Join(strings.Fields(r.stderr), " "),
		strings.Join(want, " ")) {
		return fmt.Errorf("standard error has not %q\n%s", c.config.StdErr, r.stderr)
	}
	if update {
		return c.updateExpected(ctx, r)
	}
	results, err := c.readExpected(resultsFile)
	if err == nil && results != nil {
		err = compareResults(results, r.results)
	}
	if err != nil {
		return err
	}
	patch, err := c.readExpected(patchFile)
	if err != nil {
		return err
	}
	if c.config.ExitCode != 0 {
		return nil // as in kpt, the files of an expected failure are not compared
	}
	files, err := diff.Apply(r.before, string(patch))
	if err != nil {
		return fmt.Errorf("%s/%s: %w", expectedDir, patchFile, err)
	}
	unequal := slices.DeleteFunc(pkgtree.Diff(files, r.after), pkgtree.Change.IsStyle)
	if len(unequal) > 0 {
		return &unexpectedFiles{unequal}
	}
	return nil
}

// unexpectedFiles is the error of a test whose files differ from the expected files.
type unexpectedFiles struct{ changes []pkgtree.Change }

func (u *unexpectedFiles) Error() string {
	return "files differ from " + expectedDir + "/" + patchFile + " (-want +got)"
}

// compareResults compares two contents of results.yaml by value. It ignores logs, which may contain times.
func compareResults(want, got []byte) error {
	var values [2]map[string]any
	for i, data := range [][]byte{want, got} {
		if err := yaml.Unmarshal(data, &values[i]); err != nil {
			return fmt.Errorf("%s: %w", resultsFile, err)
		}
		items, _ := values[i]["items"].([]any)
		for _, item := range items {
			if fields, ok := item.(map[string]any); ok {
				delete(fields, "stderr")
			}
		}
	}
	if reflect.DeepEqual(values[0], values[1]) {
		return nil
	}
	return &unexpectedFiles{[]pkgtree.Change{{Path: expectedDir + "/" + resultsFile, Before: want, After: got}}}
}

// updateExpected stores the outcome of a test as the expected outcome. As in kpt, it writes results.yaml only if
// the test already contains this file.
func (c *testCase) updateExpected(ctx context.Context, r testRun) error {
	patch := pkgtree.Change{Path: patchFile}
	for _, change := range pkgtree.Diff(r.before, r.after) {
		patch.After = append(patch.After, diff.Unified(change)...)
	}
	// If there are no results, we empty an existing results.yaml instead of deleting it. This is because later updates
	// write results.yaml only if the file exists.
	results := pkgtree.Change{Path: resultsFile, After: append([]byte{}, r.results...)}
	var changes []pkgtree.Change
	for _, change := range []pkgtree.Change{patch, results} {
		var err error
		if change.Before, err = c.readExpected(change.Path); err != nil {
			return err
		}
		if change.Before != nil || (change.Path == patchFile && change.After != nil) {
			changes = append(changes, change)
		}
	}
	return pkgtree.Apply(ctx, filepath.Join(c.dir, expectedDir), changes)
}

// sourceFS provides a package's files, without .expected and .git. It returns an error if the package is too large.
type sourceFS struct {
	fs.FS

	dir  string
	size int64 // size of the files in the directories that were read
}

// ReadDir implements fs.ReadDirFS.
func (s *sourceFS) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(s.FS, name)
	entries = slices.DeleteFunc(entries, func(entry fs.DirEntry) bool {
		return entry.IsDir() && (entry.Name() == expectedDir || entry.Name() == ".git")
	})
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			return nil, err
		}
		s.size += info.Size()
	}
	if s.size > pkgtree.MaxPackageBytes {
		return nil, fmt.Errorf("%s has more than %d MiB", s.dir, pkgtree.MaxPackageBytes>>20)
	}
	return entries, err
}

// ReadLink implements fs.ReadLinkFS, so that links are copied as links.
func (s *sourceFS) ReadLink(name string) (string, error) { return fs.ReadLink(s.FS, name) }

// Lstat implements fs.ReadLinkFS.
func (s *sourceFS) Lstat(name string) (fs.FileInfo, error) { return fs.Lstat(s.FS, name) }

// readFiles returns the contents of all regular files below a directory, by path.
func readFiles(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		files[name], err = os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		return err
	})
	return files, err
}
