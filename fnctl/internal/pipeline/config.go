// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/kptfile"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
)

// newConfig returns the configuration of a function as in its package; nil if the function has
// none.
func newConfig(pkg *pkgtree.Package, f kptfile.Function) (*yaml.RNode, error) {
	switch {
	case f.ConfigPath != "":
		found := configResources(pkg, f.ConfigPath)
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

// configure sets the function's configuration to what the functions before it have left: files of
// configurations are resources, which functions may change. It returns the resources without that
// of configPath, which is not part of its own function's input, and that resource. If a function
// deleted it, its original content counts; if one added a resource to its file, the first counts.
func (c *Call) configure(resources []*yaml.RNode) (input []*yaml.RNode, config *yaml.RNode, err error) {
	if c.Function.ConfigRef != nil {
		c.Config, err = resolve(c.Package, *c.Function.ConfigRef, resources)
		return resources, nil, err
	}
	for i, r := range resources {
		// As in kpt, the path must be as it is written.
		if file, _ := pkgtree.File(r); c.Function.ConfigPath != "" && file == c.Function.ConfigPath && c.Package.Owns(r) {
			c.Config = r
			return slices.Concat(resources[:i], resources[i+1:]), r, nil
		}
	}
	return resources, nil, nil
}

// resolve returns the only resource of a package that a reference matches.
func resolve(pkg *pkgtree.Package, ref kptfile.Reference, resources []*yaml.RNode) (*yaml.RNode, error) {
	want := kptfile.Selector{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name, Namespace: ref.Namespace}
	var found []*yaml.RNode
	for _, r := range resources {
		if pkg.Owns(r) && match(r, want) {
			found = append(found, r)
		}
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("configRef of package %s: %s %s must be one resource of the package, but there are %d",
			pkg.Kptfile.Name, ref.Kind, ref.Name, len(found))
	}
	return found[0], nil
}

// configResources returns the resources of one file of a package.
func configResources(pkg *pkgtree.Package, configPath string) []*yaml.RNode {
	var found []*yaml.RNode
	for _, r := range pkg.Resources {
		if file, _ := pkgtree.File(r); path.Clean(file) == path.Clean(configPath) {
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
