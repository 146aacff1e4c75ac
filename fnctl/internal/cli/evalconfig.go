// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
)

// evalConfig returns the configuration from a file or from key=value pairs; nil if there is
// neither.
func evalConfig(file string, pairs []string) (*yaml.RNode, error) {
	switch {
	case file != "":
		return readConfig(file)
	case len(pairs) > 0:
		data := map[string]string{}
		for _, pair := range pairs {
			key, value, ok := strings.Cut(pair, "=")
			if !ok || key == "" {
				return nil, fmt.Errorf("takes arguments after -- as key=value, got %q", pair)
			}
			data[key] = value
		}
		return pipeline.ConfigMap(data)
	}
	return nil, nil
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
	return resources[0], nil
}
