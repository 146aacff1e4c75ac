// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// mutation is a small change of a package's source that a test must notice.
type mutation struct {
	Name    string
	Package string // directory of the package in the repository
	Edits   []edit
	// Tests lists the packages whose tests run, as paths relative to the module. At least one test must fail. By default,
	// only the changed package's tests run.
	Tests []string
}

// edit replaces a part of a package's source. Old is a regular expression that must match exactly once.
type edit struct{ Old, New string }

// Verdicts on a mutation.
const (
	killed = "killed" // a test noticed the mutation and failed
	lived  = "LIVED"  // no test failed
)

// module returns the directory of the Go module to which the mutated package belongs.
func (m mutation) module() string {
	i := slices.IndexFunc(packages, func(t target) bool { return t.path() == m.Package })
	if i < 0 {
		return ""
	}
	return packages[i].module
}

// runTests runs the tests with the mutation. It leaves the sources unchanged. Instead, it writes changed files to work,
// and the go command reads these files (-overlay).
func (m mutation) runTests(ctx context.Context, o options, work string) (verdict string, err error) {
	replaced, err := m.apply(filepath.Join(o.root, m.Package))
	if err != nil {
		return "", err
	}
	overlay, err := writeOverlay(work, replaced)
	if err != nil {
		return "", err
	}
	module := filepath.Join(o.root, m.module())
	dir := "." + string(filepath.Separator) + strings.TrimPrefix(m.Package, m.module()+"/")
	if out, err := goCommand(ctx, module, "build", "-overlay="+overlay, dir); err != nil {
		return "", fmt.Errorf("it does not compile: adapt it: %w\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(ctx, o.budget)
	defer cancel()
	tests := m.Tests
	if len(tests) == 0 {
		tests = []string{dir}
	}
	return runTests(ctx, module, overlay, tests)
}

// runTests runs tests with changed sources. The verdict is the constant lived if all tests pass despite the change.
func runTests(ctx context.Context, module, overlay string, tests []string) (verdict string, err error) {
	args := append([]string{"test", "-overlay=" + overlay, "-vet=off", "-count=1"}, tests...)
	out, err := goCommand(ctx, module, args...)
	switch exit, _ := errors.AsType[*exec.ExitError](err); {
	case err == nil:
		return lived, nil
	case exit != nil && !bytes.Contains(out, []byte("[build failed]")):
		return killed, nil
	default:
		return "", fmt.Errorf("its tests did not run: %w\n%s", err, out)
	}
}

// apply returns the contents of the files that the mutation changes. The keys are the files' paths.
func (m mutation) apply(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		if files[path], err = os.ReadFile(path); err != nil {
			return nil, err
		}
	}
	changed := map[string][]byte{}
	for _, e := range m.Edits {
		path, content, err := e.apply(files)
		if err != nil {
			return nil, err
		}
		files[path], changed[path] = content, content
	}
	return changed, nil
}

func (e edit) apply(files map[string][]byte) (path string, content []byte, err error) {
	old := regexp.MustCompile(e.Old)
	found := 0
	for p, c := range files {
		n := len(old.FindAllIndex(c, -1))
		if found += n; n > 0 {
			path, content = p, old.ReplaceAll(c, []byte(e.New))
		}
	}
	if found != 1 {
		return "", nil, fmt.Errorf("%q is there %d times, want once: the code has changed, adapt the mutation", e.Old, found)
	}
	return path, content, nil
}

// writeOverlay writes the changed files and an overlay file to the directory work. It returns the path of the overlay
// file, for the go command's option -overlay.
func writeOverlay(work string, files map[string][]byte) (path string, err error) {
	replace := map[string]string{}
	for file, content := range files {
		replace[file] = filepath.Join(work, filepath.Base(file))
		if err := os.WriteFile(replace[file], content, 0o600); err != nil {
			return "", err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path = filepath.Join(work, "overlay.json")
	return path, os.WriteFile(path, overlay, 0o600)
}

func goCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	return cmd.CombinedOutput()
}
