package component

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// generated is the source of a program that is built in a module of its own,
// so that its requirements stay out of this one.
type generated struct {
	// Mod is the module's go.mod. Go completes it.
	Mod []byte
	// Main is the program's only file.
	Main string
	// Flags are the linker's.
	Flags string
}

// build writes the program to path.
func (g generated) build(ctx context.Context, path string) error {
	dir, err := os.MkdirTemp("", "function-runner-module-")
	if err != nil {
		return fmt.Errorf("making a module: %w", err)
	}
	defer os.RemoveAll(dir)
	for name, content := range map[string][]byte{"go.mod": g.Mod, "main.go": []byte(g.Main)} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return fmt.Errorf("writing a module: %w", err)
		}
	}
	if err := goTool(ctx, dir, nil, "mod", "tidy"); err != nil {
		return err
	}
	return goTool(ctx, dir, nil, "build", "-trimpath", "-ldflags="+g.Flags, "-o", path, ".")
}
