// SPDX-License-Identifier: Apache-2.0

// Package pipeline runs the functions of a package tree as `kpt fn render` does: functions of
// subpackages before those of the package around them, mutators before validators.
//
// [NewPlan] determines which functions run on which packages before anything runs. A [Renderer]
// then runs the plan through an [Evaluator] and reports progress to an [Observer].
package pipeline

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/result"
)

// Evaluator runs a function once.
type Evaluator interface {
	Evaluate(ctx context.Context, req Request) (Response, error)
}

// Request is the input of one evaluation.
type Request struct {
	// Image and Tag name the function as in the Kptfile.
	Image, Tag string
	// ResourceList is the function's input, as YAML.
	ResourceList []byte
}

// Response is the output of a successful function.
type Response struct {
	// ResourceList is the function's output.
	ResourceList []byte
	// Log is its standard error.
	Log []byte
}

// Observer receives progress, from one goroutine.
type Observer interface {
	// Entered is called for each package before its functions run.
	Entered(plan *Plan)
	// Started is called before a function runs on the given number of resources.
	Started(call Call, resources int)
	// Finished is called after a function ran or failed.
	Finished(call Call, outcome Outcome)
}

// Outcome describes how a function ended.
type Outcome struct {
	// Elapsed is the time that the evaluation took, measured by the client.
	Elapsed time.Duration
	// Results are the function's reports about resources.
	Results []result.Result
	// Log is the function's standard error.
	Log []byte
	// Err is nil if the function succeeded.
	Err error
}

// Renderer runs plans.
type Renderer struct {
	Evaluator Evaluator
	Observer  Observer
	// Timeout bounds each evaluation; 0 is no bound.
	Timeout time.Duration
}

// Render runs the functions of a plan, and of the plans inside it first. It returns
// the resources of all its packages. The first error ends it.
func (r *Renderer) Render(ctx context.Context, plan *Plan) ([]*yaml.RNode, error) {
	var resources []*yaml.RNode
	for _, sub := range plan.Subpackages {
		rendered, err := r.Render(ctx, sub)
		if err != nil {
			return nil, err
		}
		resources = append(resources, rendered...)
	}
	resources = append(resources, plan.Package.Resources...)
	r.Observer.Entered(plan)
	for _, call := range plan.Mutators {
		var err error
		if resources, err = r.Mutate(ctx, call, resources); err != nil {
			return nil, err
		}
	}
	for _, call := range plan.Validators {
		if err := r.validate(ctx, call, resources); err != nil {
			return nil, err
		}
	}
	return resources, nil
}

// Mutate runs a function on the resources that it selects, and returns all resources with its
// changes.
func (r *Renderer) Mutate(ctx context.Context, call Call, resources []*yaml.RNode) ([]*yaml.RNode, error) {
	call.Config = currentConfig(call, resources)
	if !call.selective() {
		return r.mutate(ctx, call, resources)
	}
	if err := setIDs(resources); err != nil {
		return nil, err
	}
	selected := selectResources(resources, call.Function)
	output, err := r.mutate(ctx, call, selected)
	if err != nil {
		return nil, err
	}
	merged := merge(resources, selected, output)
	return merged, clearIDs(merged)
}

// mutate runs a function on all of the resources, and first records their places: see
// [Call.accept].
func (r *Renderer) mutate(ctx context.Context, call Call, resources []*yaml.RNode) ([]*yaml.RNode, error) {
	var err error
	if call.places, err = kio.PreprocessResourcesForInternalAnnotationMigration(resources); err != nil {
		return nil, fmt.Errorf("function %q cannot get the resources: %w", call.Function.Image, err)
	}
	return r.run(ctx, call, resources)
}

// validate runs a function on copies of the resources that it selects.
func (r *Renderer) validate(ctx context.Context, call Call, resources []*yaml.RNode) error {
	selected := selectResources(resources, call.Function)
	copies := make([]*yaml.RNode, 0, len(selected))
	for _, resource := range selected {
		copies = append(copies, resource.Copy())
	}
	_, err := r.run(ctx, call, copies)
	return err
}
