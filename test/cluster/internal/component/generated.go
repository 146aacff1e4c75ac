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

// generatedModule is the source of programs that are built in a module of their own, so that their requirements stay
// out of this one.
type generatedModule struct {
	// Mod is the module's go.mod, which also gets the requirements of this program. Go completes it.
	Mod []byte
	// Main is the only file of a program with the name of the module. Without it the programs are
	// the module's tools.
	Main string
	// Flags are the linker's flags.
	Flags string
}

// buildModule writes the programs to dir.
func (g generatedModule) buildModule(ctx context.Context, dir string) error {
	source, err := os.MkdirTemp("", "function-runner-module-")
	if err != nil {
		return fmt.Errorf("make a module: %w", err)
	}
	defer os.RemoveAll(source)
	files, programs := map[string][]byte{"go.mod": append(slices.Clone(g.Mod), sharedRequirements()...)}, "tool"
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

// toolComponent returns a component of the tools of a module.
func toolComponent(name, version, module string, packages ...string) Component {
	var mod strings.Builder
	fmt.Fprintf(&mod, "module %s\n\ngo 1.26.0\n\nrequire %s %s\n", name, module, version)
	for _, pkg := range packages {
		fmt.Fprintf(&mod, "\ntool %s%s\n", module, strings.TrimPrefix(pkg, "."))
	}
	return newComponent(name, version, generatedModule{Mod: []byte(mod.String()), Flags: stripped})
}

// newComponent returns the component that source builds.
func newComponent(name, version string, source generatedModule) Component {
	return Component{
		Name:    name,
		Version: version,
		Inputs:  []string{string(source.Mod), source.Main, source.Flags},
		Build:   source.buildModule,
	}
}

// sharedRequirements returns the requirements of this program's libraries. With them a component uses the same
// versions, or newer ones if needed: a library with many users is compiled once, which saves a
// third of the work. They are not part of a component's key: a component that was built with other versions stays.
func sharedRequirements() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return formatRequirements(info.Deps)
}

func formatRequirements(deps []*debug.Module) string {
	var lines strings.Builder
	for _, dep := range deps {
		if dep.Replace == nil {
			fmt.Fprintf(&lines, "\nrequire %s %s\n", dep.Path, dep.Version)
		}
	}
	return lines.String()
}
