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

// generatedModule is a temporary module in which programs are built. Without this module, our own go.mod would need to
// contain the requirements of the programs.
type generatedModule struct {
	// Mod is the beginning of the module's go.mod. The build appends the requirements that all components share. The go
	// command then adds all other requirements.
	Mod []byte
	// Main is the source of the module's only program. If Main is empty, the tools in the module's go.mod are built.
	Main string
	// Flags are the linker's flags.
	Flags string
}

// buildModule builds all programs of the module and writes them to dir.
func (g generatedModule) buildModule(ctx context.Context, dir string) error {
	source, err := os.MkdirTemp("", "function-runner-module-")
	if err != nil {
		return fmt.Errorf("make a module: %w", err)
	}
	defer os.RemoveAll(source)
	files, programs := map[string][]byte{"go.mod": append(slices.Clone(g.Mod), sharedRequirements()...)}, "tool"
	if g.Main != "" {
		files["main.go"] = []byte(g.Main)
		programs = "."
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(source, name), content, 0o644); err != nil {
			return fmt.Errorf("write a module: %w", err)
		}
	}
	return goTool(ctx, source, nil, "build", "-mod=mod", "-trimpath", "-ldflags="+g.Flags, "-o", dir+"/", programs)
}

// toolComponent returns a component with the programs in some packages of a published module.
func toolComponent(name, version, module string, packages ...string) Component {
	var mod strings.Builder
	fmt.Fprintf(&mod, "module %s\n\ngo 1.26.0\n\nrequire %s %s\n", name, module, version)
	for _, pkg := range packages {
		fmt.Fprintf(&mod, "\ntool %s%s\n", module, strings.TrimPrefix(pkg, "."))
	}
	return newComponent(name, version, generatedModule{Mod: []byte(mod.String()), Flags: stripped})
}

// newComponent returns a component that is built from source.
func newComponent(name, version string, source generatedModule) Component {
	return Component{
		Name:    name,
		Version: version,
		Inputs:  []string{string(source.Mod), source.Main, source.Flags},
		Build:   source.buildModule,
	}
}

// sharedRequirements returns this program's requirements as lines of a go.mod. Components with these lines use the same
// or newer versions of libraries. Go therefore compiles each version only once, which saves a third of the build time.
// The components' cache keys ignore these lines. Otherwise, each change of this program would rebuild all components.
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
