// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/filelock"
)

// program is a compiled Go program for an image.
type program struct {
	Package string
	// Version is the version of the program's module. It is empty for modules of this repository.
	Version string
	Path    string
}

// buildPrograms builds the programs in a module whose packages match the patterns. Building an unchanged program is
// fast, because Go's build cache contains it.
func (s Source) buildPrograms(ctx context.Context, module string, patterns ...string) ([]program, error) {
	out := filepath.Join(s.Out, module)
	unlock, err := filelock.Acquire(out + ".lock")
	if err != nil {
		return nil, err
	}
	defer unlock()
	programs, err := s.listPrograms(ctx, module, out, patterns)
	if err != nil || len(programs) == 0 {
		return nil, err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, fmt.Errorf("build the programs of %s: %w", module, err)
	}
	args := []string{"build", "-trimpath", "-ldflags=-s -w", "-o", out + "/"}
	for _, program := range programs {
		args = append(args, program.Package)
	}
	if _, err := s.goTool(ctx, module, args...); err != nil {
		return nil, err
	}
	return programs, nil
}

// Program builds a program in one of the repository's modules, and returns the program's path.
func (s Source) Program(ctx context.Context, module, pkg string) (string, error) {
	programs, err := s.buildPrograms(ctx, module, pkg)
	if err != nil {
		return "", err
	}
	if len(programs) != 1 {
		return "", fmt.Errorf("build a program: %s in %s is not a main package", pkg, module)
	}
	return programs[0].Path, nil
}

// Kodata runs `make kodata`, which writes the data files for the images of this repository's programs.
func (s Source) Kodata(ctx context.Context) error {
	unlock, err := filelock.Acquire(filepath.Join(s.Out, "kodata.lock"))
	if err != nil {
		return err
	}
	defer unlock()
	command := exec.CommandContext(ctx, "make", "--no-print-directory", "-C", s.Root, "kodata")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("make kodata: %w\n%s", err, output)
	}
	return nil
}

func (s Source) listPrograms(ctx context.Context, module, out string, patterns []string) ([]program, error) {
	const format = `{{if eq .Name "main"}}{{.ImportPath}} {{with .Module}}{{.Version}}{{end}}{{end}}`
	listed, err := s.goTool(ctx, module, append([]string{"list", "-f", format}, patterns...)...)
	if err != nil {
		return nil, err
	}
	var programs []program
	for line := range strings.Lines(listed) {
		pkg, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		if pkg != "" {
			programs = append(programs, program{Package: pkg, Version: version, Path: filepath.Join(out, filepath.Base(pkg))})
		}
	}
	return programs, nil
}

// goTool runs the go command in a module and returns the output. It disables Go workspaces, because a workspace would
// merge the requirements of all modules.
func (s Source) goTool(ctx context.Context, module string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = filepath.Join(s.Root, module)
	command.Env = append(command.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("go %s in %s: %w\n%s", args[0], command.Dir, err, stderr.String())
	}
	return stdout.String(), nil
}
