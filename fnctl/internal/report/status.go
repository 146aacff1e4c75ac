// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/kptfile"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
)

// rendered is the type of the condition in a Kptfile's status that contains the outcome of the last rendering.
const rendered = "Rendered"

type condition struct {
	Type    string `yaml:"type"`
	Status  string `yaml:"status"`
	Reason  string `yaml:"reason,omitempty"`
	Message string `yaml:"message,omitempty"`
}

type renderStatus struct {
	Mutations    []step `yaml:"mutationSteps,omitempty"`
	Validations  []step `yaml:"validationSteps,omitempty"`
	ErrorSummary string `yaml:"errorSummary,omitempty"`
}

// SetStatus writes the outcome of a package's rendering into its Kptfile, with an entry for each function. It replaces
// the condition "Rendered" and keeps all other conditions.
func SetStatus(root *yaml.RNode, rendering *pipeline.Rendering, failure error) error {
	if err := kptfile.ChooseStyle(root); err != nil {
		return err
	}
	conditions, err := kptfile.Create(root, yaml.SequenceNode, "status", "conditions")
	if err != nil {
		return fmt.Errorf("write the status of the Kptfile: %w", err)
	}
	now, err := toNode(newCondition(failure))
	if err != nil {
		return err
	}
	list := conditions.YNode()
	list.Content = append(otherConditions(list.Content), now.YNode())
	return setRenderStatus(root, rendering)
}

// setRenderStatus replaces the outcomes of functions in the field status.renderStatus of a Kptfile.
func setRenderStatus(root *yaml.RNode, rendering *pipeline.Rendering) (err error) {
	var status *yaml.RNode
	if steps := newRenderStatus(rendering); len(steps.Mutations)+len(steps.Validations) > 0 {
		if status, err = toNode(steps); err != nil {
			return err
		}
	}
	if err := root.PipeE(yaml.Lookup("status"), yaml.FieldClearer{Name: "renderStatus"}); err != nil {
		return err
	}
	if status == nil {
		return nil
	}
	return root.PipeE(yaml.Lookup("status"), yaml.SetField("renderStatus", status))
}

// otherConditions returns the conditions that other tools wrote, with a type other than "Rendered".
func otherConditions(conditions []*yaml.Node) []*yaml.Node {
	var kept []*yaml.Node
	for _, c := range conditions {
		if yaml.NewRNode(c).Field("type") == nil || yaml.GetValue(yaml.NewRNode(c).Field("type").Value) != rendered {
			kept = append(kept, c)
		}
	}
	return kept
}

func newCondition(failure error) condition {
	if failure == nil {
		return condition{Type: rendered, Status: "True", Reason: "RenderSuccess"}
	}
	return condition{Type: rendered, Status: "False", Reason: "RenderFailed", Message: failureMessage(failure)}
}

// failureMessage returns the reason of a failed rendering, for the condition in the Kptfile. It omits the output of a
// failed function, because the function's entry in the status already contains this output.
func failureMessage(failure error) string {
	if failed, ok := errors.AsType[*pipeline.FunctionError](failure); ok {
		return fmt.Sprintf("function %q failed", failed.Image)
	}
	return problem(failure)
}

func newRenderStatus(rendering *pipeline.Rendering) renderStatus {
	var s renderStatus
	var failures []string
	describe := func(steps []pipeline.Step) []step {
		var described []step
		for _, taken := range steps {
			described = append(described, newStep(taken))
			if failure := described[len(described)-1].failure(); failure != "" {
				failures = append(failures, failure)
			}
		}
		return described
	}
	s.Mutations = describe(rendering.Mutations)
	s.Validations = describe(rendering.Validations)
	s.ErrorSummary = strings.Join(failures, "\n")
	return s
}

// toNode converts a value to a YAML node.
func toNode(value any) (*yaml.RNode, error) {
	data, err := encodeWide(value)
	if err != nil {
		return nil, err
	}
	return yaml.Parse(string(data))
}
