// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
)

// generated is the source of programs that are built in a module of their own, so that their requirements stay out of
// this one.
type generated struct {
	// Mod is the module's go.mod, which also gets the requirements of this program. Go completes it.
	Mod []byte
	// Main is the only file of a program with the name of the module. Without it the programs are
	// the module's tools.
	Main string
	// Flags are the linker's flags.
	Flags string
}

// build writes the programs to dir.
func (g generated) build(ctx context.Context, dir string) error {
	source, err := os.MkdirTemp("", "function-runner-module-")
	if err != nil {
		return fmt.Errorf("make a module: %w", err)
	}
	defer os.RemoveAll(source)
	files, programs := map[string][]byte{"go.mod": append(slices.Clone(g.Mod), shared()...)}, "tool"
	if g.Main != "" {
		files["main.go"], programs = []byte(g.Main), "."
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(source, name), content, 0o644); err != nil {
			return fmt.Errorf("write a module: %w", err)
		}
	}
	return goTool(ctx, source, nil, "build", "-mod=mod", "-trimpath", "-ldflags="+g.Flags, "-o", dir+"/", programs)
}

// tools returns a component of the tools of a module.
func tools(name, version, module string, packages ...string) Component {
	var mod strings.Builder
	fmt.Fprintf(&mod, "module %s\n\ngo 1.26.0\n\nrequire %s %s\n", name, module, version)
	for _, pkg := range packages {
		fmt.Fprintf(&mod, "\ntool %s%s\n", module, strings.TrimPrefix(pkg, "."))
	}
	return component(name, version, generated{Mod: []byte(mod.String()), Flags: stripped})
}

// component returns the component that source builds.
func component(name, version string, source generated) Component {
	return Component{
		Name:    name,
		Version: version,
		Inputs:  []string{string(source.Mod), source.Main, source.Flags},
		Build:   source.build,
	}
}

// shared returns the requirements of this program's libraries. With them a component uses the same
// versions, or newer ones if needed: a library with many users is compiled once, which saves a
// third of the work. They are not part of a component's key: a component that was built with other versions stays.
func shared() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return requirements(info.Deps)
}

func requirements(deps []*debug.Module) string {
	var lines strings.Builder
	for _, dep := range deps {
		if dep.Replace == nil {
			fmt.Fprintf(&lines, "\nrequire %s %s\n", dep.Path, dep.Version)
		}
	}
	return lines.String()
}
