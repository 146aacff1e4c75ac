// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"fmt"
	"os"
)

// Skaffold returns the component with skaffold. The build copies skaffold's sources and does not use `go install`,
// because `go install` rejects the replace directives in skaffold's go.mod.
func Skaffold() Component {
	const version, path = "v2.16.1", "github.com/GoogleContainerTools/skaffold/v2"
	return Component{
		Name:    "skaffold",
		Version: version,
		Inputs:  []string{path, stripped},
		Build: func(ctx context.Context, dir string) error {
			// Do not check modules against Go's checksum database, because it lacks some old dependencies of skaffold.
			const unchecked = "GONOSUMDB=*"
			published, err := downloadModule(ctx, path, version, unchecked)
			if err != nil {
				return err
			}
			source, err := os.MkdirTemp("", "skaffold-module-")
			if err != nil {
				return fmt.Errorf("make a module: %w", err)
			}
			defer os.RemoveAll(source)
			if err := os.CopyFS(source, os.DirFS(published.Dir)); err != nil {
				return fmt.Errorf("copy the source: %w", err)
			}
			return goTool(ctx, source, []string{unchecked}, "build", "-mod=mod", "-trimpath", "-ldflags="+stripped, "-o",
				dir+"/skaffold", "./cmd/skaffold")
		},
	}
}

// Kustomize returns the component with kustomize.
func Kustomize() Component {
	return toolComponent("kustomize", "v5.8.1", "sigs.k8s.io/kustomize/kustomize/v5", ".")
}
