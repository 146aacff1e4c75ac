// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
)

// resultsFile is the name of the file in the directory of --results-dir.
const resultsFile = "results.yaml"

// list is a FunctionResultList of kpt.
type list struct {
	yaml.ResourceMeta `yaml:",inline"`
	ExitCode          int    `yaml:"exitCode"`
	Items             []step `yaml:"items,omitempty"`
}

// WriteResults writes the results of all functions that ran to a file in dir, and returns its path.
func WriteResults(dir string, steps []pipeline.Step) (string, error) {
	data, err := encodeWide(newList(steps))
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, resultsFile)
	//nolint:gosec // results are for others to read, as far as the umask permits
	if err := os.WriteFile(name, data, 0o644); err != nil {
		return "", fmt.Errorf("write --results-dir: %w", err)
	}
	return name, nil
}

// newList returns the results of the functions that ran.
func newList(steps []pipeline.Step) list {
	results := list{ResourceMeta: yaml.ResourceMeta{
		TypeMeta:   yaml.TypeMeta{APIVersion: "kpt.dev/v1", Kind: "FunctionResultList"},
		ObjectMeta: yaml.ObjectMeta{NameMeta: yaml.NameMeta{Name: "fnresults"}},
	}}
	for _, taken := range steps {
		s := newStep(taken)
		s.Name = "" // as in kpt, only the Kptfile contains this field and the two below
		s.ExecutionError = ""
		s.ErrorResults = nil
		results.Items = append(results.Items, s)
		if s.ExitCode != 0 {
			results.ExitCode = 1
		}
	}
	return results
}

// encodeWide encodes a value with indented lists, as kpt does.
func encodeWide(value any) ([]byte, error) {
	var out bytes.Buffer
	err := yaml.NewEncoderWithOptions(&out, &yaml.EncoderOptions{SeqIndent: yaml.WideSequenceStyle}).Encode(value)
	return out.Bytes(), err
}
