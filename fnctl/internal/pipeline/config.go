// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"errors"
	"fmt"
	"path"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/kptfile"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
)

// newConfig returns the configuration of a function as in its package; nil if the function has
// none.
func newConfig(pkg *pkgtree.Package, f kptfile.Function) (*yaml.RNode, error) {
	switch {
	case f.ConfigPath != "":
		found := configResources(pkg, f.ConfigPath, pkg.Resources)
		switch len(found) {
		case 0:
			return nil, errors.New("is not a resource file of the package")
		case 1:
			return pkgtree.Strip(found[0])
		}
		return nil, fmt.Errorf("must have one resource, but has %d", len(found))
	case len(f.ConfigMap) > 0:
		return ConfigMap(f.ConfigMap)
	}
	return nil, nil
}

// currentConfig returns the configuration as the mutators so far have changed it: configuration
// files are resources, which functions may change. If the file was deleted, its original content
// counts.
func currentConfig(call Call, resources []*yaml.RNode) *yaml.RNode {
	if call.Function.ConfigPath == "" {
		return call.Config
	}
	if found := configResources(call.Package, call.Function.ConfigPath, resources); len(found) > 0 {
		return found[len(found)-1]
	}
	return call.Config
}

// configResources returns the resources of one file of a package.
func configResources(pkg *pkgtree.Package, configPath string, resources []*yaml.RNode) []*yaml.RNode {
	var found []*yaml.RNode
	for _, r := range resources {
		if file, _ := pkgtree.File(r); pkg.Owns(r) && path.Clean(file) == path.Clean(configPath) {
			found = append(found, r)
		}
	}
	return found
}

// ConfigMap returns the resource for a configuration written in place, as kpt makes it.
func ConfigMap(data map[string]string) (*yaml.RNode, error) {
	config := yaml.MustParse("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: function-input\n")
	if err := config.LoadMapIntoConfigMapData(data); err != nil {
		return nil, fmt.Errorf("make a ConfigMap of the function's configuration: %w", err)
	}
	return config, nil
}
