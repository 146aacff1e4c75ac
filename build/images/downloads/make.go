// SPDX-License-Identifier: Apache-2.0

package downloads

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/krm-function-runner/function-runner/build/images/archive"
)

// Sums is the name of the file with the checksums of all archives, in the form that sha256sum checks.
const Sums = "SHA256SUMS"

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

// Make builds programs for all of their platforms, and writes their archives and Sums.
func (m Maker) Make(ctx context.Context, programs []Program) error {
	var sums bytes.Buffer
	for _, program := range programs {
		for _, platform := range program.Platforms {
			name := program.Archive(m.Version, platform)
			sum, err := m.archive(ctx, program, platform)
			if err != nil {
				return fmt.Errorf("make %s: %w", name, err)
			}
			_, _ = fmt.Fprintf(&sums, "%x  %s\n", sum, name) // a buffer takes everything
		}
	}
	return os.WriteFile(filepath.Join(m.Out, Sums), sums.Bytes(), 0o644) //nolint:gosec // it is published
}

// archive builds a program for a platform, and returns the checksum of its archive.
func (m Maker) archive(ctx context.Context, program Program, on Platform) (sum []byte, err error) {
	built, err := os.MkdirTemp("", "fnr-archive-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(built) }()
	files, err := m.build(ctx, program, on, built)
	if err != nil {
		return nil, err
	}
	out, err := os.Create(filepath.Join(m.Out, program.Archive(m.Version, on)))
	if err != nil {
		return nil, err
	}
	hash := sha256.New()
	write := archive.WriteTar
	if on.format() == ".zip" {
		write = archive.WriteZip
	}
	err = write(io.MultiWriter(out, hash), within(program.directory(m.Version, on), files), m.Modified)
	return hash.Sum(nil), errors.Join(err, out.Close())
}

// build builds what the program's archive contains into a directory.
func (m Maker) build(ctx context.Context, program Program, on Platform, into string) ([]archive.File, error) {
	name := on.executable(program.Name)
	stamp := "-s -w -X=" + versionVariable + "=" + m.Version
	if err := m.goBuild(ctx, program.Module, on, "-ldflags="+stamp, "-o", filepath.Join(into, name), "."); err != nil {
		return nil, err
	}
	files := []archive.File{
		{Path: name, Source: filepath.Join(into, name), Mode: 0o755},
		{Path: "LICENSE", Source: filepath.Join(m.Root, "LICENSE"), Mode: 0o644},
	}
	if !program.Functions {
		return files, nil
	}
	dir := filepath.Join(into, "functions")
	for _, module := range []string{"functions", "functions/apply-setters"} {
		if err := m.goBuild(ctx, module, on, "-ldflags=-s -w", "-o", dir+string(filepath.Separator), "tool"); err != nil {
			return nil, err
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		files = append(files, archive.File{
			Path: "functions/" + entry.Name(), Source: filepath.Join(dir, entry.Name()), Mode: 0o755,
		})
	}
	config := filepath.Join(m.Root, "functions/config.yaml")
	return append(files, archive.File{Path: "functions/config.yaml", Source: config, Mode: 0o644}), nil
}

// goBuild runs `go build` in a module.
func (m Maker) goBuild(ctx context.Context, module string, on Platform, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-trimpath"}, args...)...)
	cmd.Dir = filepath.Join(m.Root, module)
	cmd.Env = slices.Concat(m.Env, []string{"GOOS=" + on.OS, "GOARCH=" + on.Arch, "GOWORK=off", "CGO_ENABLED=0"})
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", module, err, out)
	}
	return nil
}
