// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
)

const porchModule = "github.com/nephio-project/porch"

// Manifests is the subdirectory of a built component that contains Kubernetes manifests.
const Manifests = "manifests"

// porchManifests are patterns of the manifests in Porch's module that install Porch. They install its custom
// resource definitions, and all its programs except for the controllers.
var porchManifests = []string{
	"api/porchconfig/*/config.porch.kpt.dev_*.yaml",
	"internal/api/porchinternal/*/config.porch.kpt.dev_*.yaml",
	"deployments/porch/[1-8]-*.yaml",
}

// renamed maps names of Porch's programs to clearer names. Porch's program "git" is a Git server for tests.
var renamed = map[string]string{"git": "git-server", "server": "function-runner"}

// Porch returns the component with Porch's manifests and programs. The programs include the wrapper-server, the command
// line and a Git server for tests. The go.mod in test/cluster/porch lists the programs as tools. It also pins the
// versions of the programs and of all their dependencies.
func Porch(root string) (Component, error) {
	module := filepath.Join(root, "test", "cluster", "porch")
	mod, err := os.ReadFile(filepath.Join(module, "go.mod"))
	if err != nil {
		return Component{}, fmt.Errorf("read the requirements of Porch: %w", err)
	}
	sum, err := os.ReadFile(filepath.Join(module, "go.sum"))
	if err != nil {
		return Component{}, fmt.Errorf("read the requirements of Porch: %w", err)
	}
	version, err := requiredVersion(mod, porchModule)
	if err != nil {
		return Component{}, err
	}
	return Component{
		Name:    "porch",
		Version: version,
		Inputs:  append([]string{string(mod), string(sum), stripped}, porchManifests...),
		Build:   func(ctx context.Context, dir string) error { return buildPorch(ctx, module, dir) },
	}, nil
}

func buildPorch(ctx context.Context, module, dir string) error {
	if err := goTool(ctx, module, nil, "build", "-trimpath", "-ldflags="+stripped, "-o", dir+"/", "tool"); err != nil {
		return err
	}
	for from, to := range renamed {
		if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
			return fmt.Errorf("name Porch's programs: %w", err)
		}
	}
	source, err := goOutput(ctx, module, nil, "list", "-m", "-f", "{{.Dir}}", porchModule)
	if err != nil {
		return err
	}
	if err := copyManifests(strings.TrimSpace(string(source)), filepath.Join(dir, Manifests)); err != nil {
		return fmt.Errorf("copy Porch's manifests: %w", err)
	}
	return nil
}

func copyManifests(from, to string) error {
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	for _, pattern := range porchManifests {
		paths, err := filepath.Glob(filepath.Join(from, pattern))
		if err != nil {
			return err
		}
		if len(paths) == 0 {
			return fmt.Errorf("there is no %s", pattern)
		}
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(to, filepath.Base(path)), content, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// requiredVersion returns the version of a module that a go.mod requires.
func requiredVersion(mod []byte, module string) (string, error) {
	parsed, err := modfile.Parse("go.mod", mod, nil)
	if err != nil {
		return "", fmt.Errorf("parse the requirements of a component: %w", err)
	}
	for _, required := range parsed.Require {
		if required.Mod.Path == module {
			return required.Mod.Version, nil
		}
	}
	return "", fmt.Errorf("the requirements do not name %s", module)
}
