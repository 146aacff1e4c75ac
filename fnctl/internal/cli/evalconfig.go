// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// pairsConfig returns the configuration of arguments: key=value pairs, in their order, for a
// ConfigMap, or for the kind that the first argument names. It also returns the pairs.
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

// noConfig returns the configuration of a function that has none. Some functions read it anyway,
// and kpt passes them this one.
func noConfig() *yaml.RNode {
	return yaml.MustParse("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: function-input\ndata: {}\n")
}

func readConfig(file string) (*yaml.RNode, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read --fn-config: %w", err)
	}
	reader := kio.ByteReader{Reader: bytes.NewReader(data), OmitReaderAnnotations: true, DisableUnwrapping: true}
	resources, err := reader.Read()
	if err != nil {
		return nil, fmt.Errorf("read --fn-config: %s: %w", file, err)
	}
	if len(resources) != 1 {
		return nil, fmt.Errorf("read --fn-config: %s must have one resource, but has %d", file, len(resources))
	}
	config := resources[0]
	for _, field := range []struct{ name, value string }{
		{"apiVersion", config.GetApiVersion()}, {"kind", config.GetKind()}, {"metadata.name", config.GetName()},
	} {
		if field.value == "" {
			return nil, fmt.Errorf("read --fn-config: %s has no %s", file, field.name)
		}
	}
	return config, nil
}
