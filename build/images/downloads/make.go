// SPDX-License-Identifier: Apache-2.0

package downloads

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/krm-function-runner/function-runner/build/images/archive"
)

// versionVariable is what a release build sets.
const versionVariable = "github.com/krm-function-runner/function-runner/libs/version.stamped"

// Maker makes archives.
type Maker struct {
	// Root is the repository's root.
	Root string
	// Env is the environment of Go's commands.
	Env []string
	// Version is what the programs print for --version.
	Version string
	// Modified is the time of all files.
	Modified time.Time
	// Out is the directory of the archives.
	Out string
}

// Make builds programs for all of their platforms, and writes their archives.
func (m Maker) Make(ctx context.Context, programs []Program) error {
	for _, program := range programs {
		for _, platform := range program.Platforms {
			if err := m.archive(ctx, program, platform); err != nil {
				return fmt.Errorf("make %s: %w", program.Archive(m.Version, platform), err)
			}
		}
	}
	return nil
}

// archive builds a program for a platform, and writes its archive.
func (m Maker) archive(ctx context.Context, program Program, on Platform) error {
	built, err := os.MkdirTemp("", "fnr-archive-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(built) }()
	files, err := m.build(ctx, program, on, built)
	if err != nil {
		return err
	}
	write := archive.WriteTarGz
	if on.format() == ".zip" {
		write = archive.WriteZip
	}
	return archive.Create(filepath.Join(m.Out, program.Archive(m.Version, on)), write,
		within(program.directory(m.Version, on), files), m.Modified)
}

// build builds what the program's archive contains into a directory.
func (m Maker) build(ctx context.Context, program Program, on Platform, into string) ([]archive.File, error) {
	name := on.executable(program.Name)
	stamp := "-s -w -X=" + versionVariable + "=" + m.Version
	args := []string{"-ldflags=" + stamp, "-o", filepath.Join(into, name), program.Package}
	if err := m.goBuild(ctx, program.Module, on, args...); err != nil {
		return nil, err
	}
	files := []archive.File{
		{Path: name, Source: filepath.Join(into, name), Mode: 0o755},
		{Path: "LICENSE", Source: filepath.Join(m.Root, "LICENSE"), Mode: 0o644},
	}
	if !program.Functions {
		return files, nil
	}
	functions, err := m.Functions(ctx, on, filepath.Join(into, "functions"))
	if err != nil {
		return nil, err
	}
	return append(files, within("functions", functions)...), nil
}

// Functions builds the catalog functions for a platform into a directory, and returns them with their
// configuration.
func (m Maker) Functions(ctx context.Context, on Platform, dir string) ([]archive.File, error) {
	for _, module := range []string{"functions", "functions/apply-setters"} {
		if err := m.goBuild(ctx, module, on, "-ldflags=-s -w", "-o", dir+string(filepath.Separator), "tool"); err != nil {
			return nil, err
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []archive.File
	for _, entry := range entries {
		files = append(files, archive.File{Path: entry.Name(), Source: filepath.Join(dir, entry.Name()), Mode: 0o755})
	}
	config := filepath.Join(m.Root, "functions/config.yaml")
	return append(files, archive.File{Path: "config.yaml", Source: config, Mode: 0o644}), nil
}

// WrapperServer builds the wrapper server for a platform into a directory, and returns its path.
func (m Maker) WrapperServer(ctx context.Context, on Platform, dir string) (string, error) {
	path := filepath.Join(dir, "wrapper-server")
	return path, m.goBuild(ctx, "wrapper-server", on, "-ldflags=-s -w", "-o", path, ".")
}

// goBuild runs `go build` in a module.
func (m Maker) goBuild(ctx context.Context, module string, on Platform, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-trimpath"}, args...)...)
	cmd.Dir = filepath.Join(m.Root, module)
	cmd.Env = slices.Concat(m.Env, []string{
		"GOFLAGS=-buildvcs=false", "GOOS=" + on.OS, "GOARCH=" + on.Arch, "GOWORK=off", "CGO_ENABLED=0",
	})
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", module, err, out)
	}
	return nil
}
