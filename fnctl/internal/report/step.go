// SPDX-License-Identifier: Apache-2.0

// Package report writes the outcome of renderings to results.yaml and Kptfiles as kpt does, and in CI formats.
package report

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/client"
	"github.com/krm-function-runner/function-runner/fnctl/internal/kptfile"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	"github.com/krm-function-runner/function-runner/fnctl/internal/result"
	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
)

// step is an entry of the field status.renderStatus in a Kptfile, about a function that ran or could not run.
type step struct {
	Name  string `yaml:"name,omitempty"`
	Image string `yaml:"image,omitempty"`
	Exec  string `yaml:"exec,omitempty"`
	// ExecutionError is the reason why the function did not run, or why its output cannot be used.
	ExecutionError string          `yaml:"executionError,omitempty"`
	Stderr         string          `yaml:"stderr,omitempty"`
	ExitCode       int             `yaml:"exitCode"`
	Results        []result.Record `yaml:"results,omitempty"`
	ErrorResults   []result.Record `yaml:"errorResults,omitempty"`
}

func newStep(taken pipeline.Step) step {
	f, outcome := taken.Call.Function, taken.Outcome
	s := step{
		Name: f.Name, Image: kptfile.ImageName(f.Image, f.Tag), Exec: f.Exec, Stderr: string(outcome.Log),
		Results: outcome.Results,
	}
	if failed, ok := errors.AsType[*pipeline.FunctionError](outcome.Err); ok {
		details := failed.Failure
		s.Stderr = details.GetStderr()
		s.ExitCode = cmp.Or(int(details.GetExitCode()), 1)
		if details.GetReason() == functionrunnerv1.FunctionFailure_REASON_SIGNALED {
			s.ExitCode = -1
		}
		if details == nil {
			s.Stderr = failed.Message // the runner sends no other text
		}
	} else if outcome.Err != nil {
		s.ExecutionError = problem(outcome.Err)
		s.ExitCode = 1
	}
	if f.Exec == "" {
		// As in kpt, logs of containers are stored without the last newline.
		s.Stderr = strings.TrimSuffix(s.Stderr, "\n")
	}
	for _, r := range s.Results {
		if r.Severity == string(result.Error) {
			s.ErrorResults = append(s.ErrorResults, r)
		}
	}
	return s
}

// problem returns the reason of a failure. It omits the advice, which is only useful on a terminal.
func problem(err error) string {
	if call, ok := errors.AsType[*client.CallError](err); ok {
		return call.Problem
	}
	return err.Error()
}

// failure describes a failed step in one line. It is empty if the function succeeded.
func (s step) failure() string {
	name := cmp.Or(s.Name, s.Image, s.Exec)
	switch {
	case s.ExecutionError != "":
		return name + ": " + s.ExecutionError
	case s.ExitCode != 0:
		return fmt.Sprintf("%s: exit code %d", name, s.ExitCode)
	}
	return ""
}

// ResultsFile is the name of the file with all results in the directory of --results-dir.
const ResultsFile = "results.yaml"

// list is the content of results.yaml, a FunctionResultList of kpt.
type list struct {
	yaml.ResourceMeta `yaml:",inline"`
	ExitCode          int    `yaml:"exitCode"`
	Items             []step `yaml:"items,omitempty"`
}

// WriteResults writes the results of all functions that ran to results.yaml in dir, and returns the file's path.
func WriteResults(dir string, steps []pipeline.Step) (string, error) {
	data, err := encodeWide(newList(steps))
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, ResultsFile)
	//nolint:gosec // results are for others to read, as far as the umask permits
	if err := os.WriteFile(name, data, 0o644); err != nil {
		return "", fmt.Errorf("write --results-dir: %w", err)
	}
	return name, nil
}

// newList returns the results of the functions that ran, for results.yaml.
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

// encodeWide encodes a value as YAML with indented lists, as kpt does.
func encodeWide(value any) ([]byte, error) {
	var out bytes.Buffer
	err := yaml.NewEncoderWithOptions(&out, &yaml.EncoderOptions{SeqIndent: yaml.WideSequenceStyle}).Encode(value)
	return out.Bytes(), err
}
