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

// newConfig returns a function's configuration, from the field configPath or configMap of the Kptfile. It is nil if
// the function has no configuration.
func newConfig(pkg *pkgtree.Package, f kptfile.Function) (*yaml.RNode, error) {
	switch {
	case f.ConfigPath != "":
		found := configResources(pkg, f.ConfigPath)
		switch len(found) {
		case 0:
			return nil, errors.New("is not a resource file of the package")
		case 1:
			if r := found[0]; r.GetApiVersion() == "" || r.GetKind() == "" || r.GetName() == "" {
				return nil, errors.New("must have apiVersion, kind and metadata.name")
			}
			return pkgtree.Strip(found[0])
		}
		return nil, fmt.Errorf("must have one resource, but has %d", len(found))
	case len(f.ConfigMap) > 0:
		return ConfigMap(f.ConfigMap)
	}
	return nil, nil
}

// updateConfig replaces the function's configuration by its current version in resources. This is because earlier
// functions may have changed it. If its file now contains several resources, the first resource is used. If an earlier
// function deleted the configuration, the original configuration stays in use.
func (c *Call) updateConfig(resources []*yaml.RNode) {
	for _, r := range resources {
		// As in kpt, paths are compared as strings: ./fn.yaml differs from fn.yaml.
		if file, _ := pkgtree.File(r); c.Function.ConfigPath != "" && file == c.Function.ConfigPath && c.Package.Owns(r) {
			c.Config = r.Copy()
			return
		}
	}
}

func configResources(pkg *pkgtree.Package, configPath string) []*yaml.RNode {
	var found []*yaml.RNode
	for _, r := range pkg.Resources {
		if file, _ := pkgtree.File(r); path.Clean(file) == path.Clean(configPath) {
			found = append(found, r)
		}
	}
	return found
}

// ConfigMap returns the ConfigMap that kpt creates from a function's field configMap in a Kptfile. data may be empty.
func ConfigMap(data map[string]string) (*yaml.RNode, error) {
	config := yaml.MustParse("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: function-input\ndata: {}\n")
	config.Field("data").Value.YNode().Style = 0 // each entry on its own line
	if err := config.LoadMapIntoConfigMapData(data); err != nil {
		return nil, fmt.Errorf("make a ConfigMap of the function's configuration: %w", err)
	}
	return config, nil
}
