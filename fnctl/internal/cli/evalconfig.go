// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
)

// pairsConfig returns the function's configuration from key=value arguments, in their order, and the pairs as a map.
// The configuration is a ConfigMap unless the first argument names another kind.
func pairsConfig(args []string) (*yaml.RNode, map[string]string, error) {
	config, values := noConfig(), map[string]string{}
	if !strings.Contains(args[0], "=") {
		if err := config.PipeE(yaml.SetField("kind", yaml.NewScalarRNode(args[0]))); err != nil {
			return nil, nil, err
		}
		args = args[1:]
	}
	data := config.Field("data").Value
	data.YNode().Style &^= yaml.FlowStyle
	for _, arg := range args {
		key, value, ok := strings.Cut(arg, "=")
		if !ok || key == "" {
			return nil, nil, fmt.Errorf("takes arguments after -- as key=value, got %q", arg)
		}
		if err := data.PipeE(yaml.SetField(key, yaml.NewStringRNode(value))); err != nil {
			return nil, nil, err
		}
		values[key] = value
	}
	return config, values, nil
}

// noConfig returns the configuration that kpt passes to a function without a configuration. Some functions read their
// configuration in any case.
func noConfig() *yaml.RNode {
	return yaml.MustParse("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: function-input\ndata: {}\n")
}

// readConfig returns the configuration in a file. If the file is inside the package in dir, it must not be a link
// that leaves the package.
func readConfig(file, dir string) (*yaml.RNode, error) {
	read := os.ReadFile
	if inside, err := relativePath(dir, file); err == nil && filepath.IsLocal(filepath.FromSlash(inside)) {
		read = func(string) ([]byte, error) { return pkgtree.ReadInside(dir, inside) }
	}
	data, err := read(file)
	if err != nil {
		return nil, fmt.Errorf("read --fn-config: %w", err)
	}
	config, err := pkgtree.ReadConfig(file, data)
	if err != nil {
		return nil, fmt.Errorf("read --fn-config: %w", err)
	}
	for _, field := range []struct{ name, value string }{
		{"apiVersion", config.GetApiVersion()}, {"kind", config.GetKind()}, {"metadata.name", config.GetName()},
	} {
		if field.value == "" {
			return nil, fmt.Errorf("read --fn-config: %s has no %s", file, field.name)
		}
	}
	return config, nil
}
