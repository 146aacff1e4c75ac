// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"fmt"
	"io"
	"time"

	"sigs.k8s.io/kustomize/kyaml/fn/runtime/runtimeutil"
	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/result"
)

// OutputError reports an invalid output of a function.
type OutputError struct {
	Image string
	Err   error
}

func (e *OutputError) Error() string {
	return fmt.Sprintf("the output of function %q cannot be used: %v", e.Image, e.Err)
}

func (e *OutputError) Unwrap() error { return e.Err }

// run evaluates a function on resources, and returns the resources of its output.
func (r *Renderer) run(ctx context.Context, call Call, resources []*yaml.RNode) ([]*yaml.RNode, Step, error) {
	r.Observer.Started(call, len(resources))
	var outcome Outcome
	output, err := r.evaluate(ctx, call, resources, &outcome)
	outcome.Err = err
	r.Observer.Finished(call, outcome)
	return output, Step{Call: call, Outcome: outcome}, err
}

// evaluate does the work of run and records the outcome. The filter is kyaml's own, as under kpt:
// it writes the ResourceList, and carries comments and the order of fields over to the function's
// output.
func (r *Renderer) evaluate(ctx context.Context, call Call, resources []*yaml.RNode,
	outcome *Outcome,
) ([]*yaml.RNode, error) {
	var evaluation error
	ran := false
	filter := &runtimeutil.FunctionFilter{
		FunctionConfig: call.Config,
		GlobalScope:    true,
		Run: func(in io.Reader, out io.Writer) error {
			ran = true
			evaluation = r.exchange(ctx, call, in, out, outcome)
			return evaluation
		},
	}
	output, err := filter.Filter(resources)
	switch {
	case evaluation != nil:
		return nil, evaluation
	case err != nil && !ran:
		return nil, &InputError{err}
	case err == nil:
		outcome.Results, err = result.FromYAML(filter.Results)
	}
	if err == nil {
		err = call.accept(output)
	}
	if err != nil {
		return nil, &OutputError{Image: call.Function.Title(), Err: err}
	}
	return output, nil
}

// exchange sends a ResourceList to the function and receives its output.
func (r *Renderer) exchange(ctx context.Context, call Call, in io.Reader, out io.Writer, outcome *Outcome) error {
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
	})
	outcome.Elapsed, outcome.Log = time.Since(began), resp.Log
	if err != nil {
		return err
	}
	_, err = out.Write(resp.ResourceList)
	return err
}

// accept makes a function's output part of the call's package, if it is valid. Two annotations name
// a resource's place, and functions made with old SDKs change the old one alone. As in kpt,
// whichever a mutator changed counts for both.
func (c Call) accept(output []*yaml.RNode) error {
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
