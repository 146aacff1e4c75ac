// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"fmt"

	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// Mutate runs a function on the resources that it selects. It returns all resources, including the function's
// changes. While the function runs, the given resources carry additional annotations. After an error, they are
// unchanged.
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

// runMutator records the places of the resources for [Call.checkOutput], and then runs a function on all resources.
func (r *Renderer) runMutator(ctx context.Context, call Call, resources []*yaml.RNode) ([]*yaml.RNode, Step, error) {
	var err error
	if call.places, err = kio.PreprocessResourcesForInternalAnnotationMigration(resources); err != nil {
		err = &InputError{err}
		return nil, Step{Call: call, Outcome: Outcome{Err: err}}, err
	}
	return r.runCall(ctx, call, resources)
}

// Validate runs a function on copies of the resources that it selects.
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

// InputError reports resources that cannot be passed to functions.
type InputError struct{ Err error }

func (e *InputError) Error() string {
	return fmt.Sprintf("the resources cannot be passed to functions: %v", e.Err)
}

func (e *InputError) Unwrap() error { return e.Err }
