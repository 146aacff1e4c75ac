// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"sigs.k8s.io/kustomize/kyaml/fn/runtime/runtimeutil"
	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/result"
	"github.com/krm-function-runner/function-runner/libs/excerpt"
	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
)

// FunctionError reports a function that ran and failed.
type FunctionError struct {
	Image string
	// Message is the gateway's description of the failure.
	Message string
	// Failure contains the exit code and the log. It is nil if the gateway sent no details.
	Failure *functionrunnerv1.FunctionFailure
	// Results are the messages of the function about resources.
	Results []result.Record
}

func (e *FunctionError) Error() string { return e.Message }

// OutputError reports that a function succeeded but its output is unusable, such as text without a ResourceList.
type OutputError struct {
	Image string
	Err   error
}

func (e *OutputError) Error() string {
	return fmt.Sprintf("the output of function %q cannot be used: %v", e.Image, e.Err)
}

func (e *OutputError) Unwrap() error { return e.Err }

// runCall evaluates a function on resources, informs the observer, and returns the resources of the output.
func (r *Renderer) runCall(ctx context.Context, call Call, resources []*yaml.RNode) ([]*yaml.RNode, Step, error) {
	r.Observer.Started(call, len(resources))
	var outcome Outcome
	output, err := r.evaluateCall(ctx, call, resources, &outcome)
	outcome.Err = err
	if failed, ok := errors.AsType[*FunctionError](err); ok {
		outcome.Results = failed.Results
	}
	r.Observer.Finished(call, outcome)
	return output, Step{Call: call, Outcome: outcome}, err
}

// evaluateCall evaluates a function on resources, and stores the function's log and results in outcome. As in kpt, it
// calls the function through a filter of kyaml. The filter encodes the ResourceList. It also restores comments and the
// order of fields in the function's output.
func (r *Renderer) evaluateCall(ctx context.Context, call Call, resources []*yaml.RNode,
	outcome *Outcome,
) ([]*yaml.RNode, error) {
	var evaluation error
	ran := false
	filter := &runtimeutil.FunctionFilter{
		FunctionConfig: call.Config,
		GlobalScope:    true,
		Run: func(in io.Reader, out io.Writer) error {
			ran = true
			evaluation = r.callEvaluator(ctx, call, in, out, outcome)
			return evaluation
		},
	}
	output, err := filter.Filter(resources)
	written := outcome.output
	outcome.output = nil // large, and no longer needed
	switch {
	case evaluation != nil:
		return nil, evaluation
	case err != nil && !ran:
		return nil, &InputError{err}
	case err != nil:
		err = explainOutput(written, err)
	default:
		outcome.Results, err = result.FromYAML(filter.Results)
	}
	if err == nil {
		err = call.checkOutput(output)
	}
	if err != nil {
		return nil, &OutputError{Image: call.Function.Title(), Err: err}
	}
	return output, nil
}

// callEvaluator reads a ResourceList from in, passes it to the function, and writes the function's output to out.
func (r *Renderer) callEvaluator(ctx context.Context, call Call, in io.Reader, out io.Writer, outcome *Outcome) error {
	list, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	if r.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.Timeout)
		defer cancel()
	}
	began := time.Now()
	resp, err := r.Evaluator.Evaluate(ctx, Request{
		Image: call.Function.Image, Tag: call.Function.Tag, Exec: call.Function.Exec, ResourceList: list,
		Waiting: r.Observer.Waiting,
	})
	outcome.Elapsed = time.Since(began)
	outcome.Log = resp.Log
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(resp.ResourceList)) == 0 {
		return &OutputError{Image: call.Function.Title(), Err: errors.New("it is empty, but must be a ResourceList")}
	}
	outcome.output = resp.ResourceList
	_, err = out.Write(resp.ResourceList)
	return err
}

// maxQuoted is the maximum number of bytes of a function's output that an error quotes.
const maxQuoted = 40

// explainOutput returns the reason why kyaml cannot read a function's output, as text for users. Usually, the
// function wrote log messages to standard output.
func explainOutput(output []byte, err error) error {
	var node yaml.Node
	if yaml.Unmarshal(output, &node) == nil && len(node.Content) > 0 && node.Content[0].Kind == yaml.MappingNode {
		return err
	}
	start, _ := excerpt.Start(strings.TrimSpace(string(output)), maxQuoted)
	return fmt.Errorf("it is not a ResourceList: it begins with %q; logs belong on standard error", start)
}

// checkOutput checks a function's output, and assigns new resources to the function's package. Two annotations of a
// resource contain its file's path, but old SDKs change only one. As in kpt, we then use the changed annotation.
func (c Call) checkOutput(output []*yaml.RNode) error {
	if c.places != nil {
		if err := kio.ReconcileInternalAnnotations(output, c.places); err != nil {
			return err
		}
	}
	if err := c.Package.Adopt(output); err != nil {
		return err
	}
	if err := checkPlaces(output, outputPlaces); err != nil {
		return err
	}
	return checkResources(output)
}

// Mutate runs a function on the resources that its selectors match, and returns all resources. If the function has
// selectors, each resource has an id in an annotation while the function runs. By the ids, Mutate merges the output
// with the resources that were not selected. After an error, resources contains no changes of the function.
func (r *Renderer) Mutate(ctx context.Context, call Call, resources []*yaml.RNode) ([]*yaml.RNode, Step, error) {
	call.updateConfig(resources)
	if !call.isSelective() {
		return r.runMutator(ctx, call, resources)
	}
	if err := setIDs(resources); err != nil {
		return nil, Step{Call: call, Outcome: Outcome{Err: err}}, err
	}
	selected := call.selectResources(resources)
	output, step, err := r.runMutator(ctx, call, selected)
	if err != nil {
		_ = clearIDs(resources)
		return nil, step, err
	}
	merged := mergeOutput(resources, selected, output)
	return merged, step, clearIDs(merged)
}

// runMutator runs a function on all given resources. It first stores the resources' file annotations.
// [Call.checkOutput] later compares them with the function's output, to find the annotations that the function changed.
func (r *Renderer) runMutator(ctx context.Context, call Call, resources []*yaml.RNode) ([]*yaml.RNode, Step, error) {
	var err error
	if call.places, err = kio.PreprocessResourcesForInternalAnnotationMigration(resources); err != nil {
		err = &InputError{err}
		return nil, Step{Call: call, Outcome: Outcome{Err: err}}, err
	}
	return r.runCall(ctx, call, resources)
}

// Validate runs a validator on copies of the resources that its selectors match, so that its changes are ignored.
func (r *Renderer) Validate(ctx context.Context, call Call, resources []*yaml.RNode) (Step, error) {
	call.updateConfig(resources)
	selected := call.selectResources(resources)
	copies := make([]*yaml.RNode, 0, len(selected))
	for _, resource := range selected {
		copies = append(copies, resource.Copy())
	}
	_, step, err := r.runCall(ctx, call, copies)
	return step, err
}

// InputError reports resources that cannot be encoded as the input of a function.
type InputError struct{ Err error }

func (e *InputError) Error() string {
	return fmt.Sprintf("the resources cannot be passed to functions: %v", e.Err)
}

func (e *InputError) Unwrap() error { return e.Err }
