// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
)

// Render runs the functions of a package and of the packages inside it. It stops at the first error, and returns
// the error together with the rendering up to the failed function.
func (r *Renderer) Render(ctx context.Context, plan *Plan) (*Rendering, error) {
	if !plan.Package.Kptfile.ParentsFirst {
		return r.innerFirst(ctx, plan)
	}
	run := &run{Renderer: r, result: &Rendering{}}
	var err error
	run.result.Resources, err = run.outerFirst(ctx, plan)
	return run.result, err
}

// run is a rendering in progress.
type run struct {
	*Renderer
	result *Rendering
}

// outerFirst renders outer packages before the packages inside them. It is used if the Kptfile requests this order by
// ParentsFirst. The functions of a package receive its own resources and the resources of the packages inside it.
// Packages run in sequence, because a function may move resources to another package, whose input then changes.
func (r *run) outerFirst(ctx context.Context, root *Plan) ([]*yaml.RNode, error) {
	levels := root.byLevel()
	own := make(map[string][]*yaml.RNode, len(levels)) // keys are labels of packages
	for _, plan := range levels {
		own[plan.Package.Label()] = plan.Package.Resources
	}
	var failed error
	for _, plan := range levels {
		var output []*yaml.RNode
		output, failed = r.runPipeline(ctx, plan, plan.gatherResources(own))
		plan.scatterResources(output, own)
		if failed != nil {
			break
		}
	}
	var all []*yaml.RNode
	for _, plan := range levels {
		all = append(all, own[plan.Package.Label()]...)
	}
	return all, failed
}

// byLevel returns the plans of a package and of all packages inside it, outer packages first.
func (p *Plan) byLevel() []*Plan {
	levels := []*Plan{p}
	for i := 0; i < len(levels); i++ {
		levels = append(levels, levels[i].Subpackages...)
	}
	return levels
}

// inDepth returns the plans of a package and of all packages inside it, in depth-first order.
func (p *Plan) inDepth() []*Plan {
	plans := []*Plan{p}
	for _, sub := range p.Subpackages {
		plans = append(plans, sub.inDepth()...)
	}
	return plans
}

// gatherResources returns the input of a package's functions: the resources of the package and of all packages inside
// it. The map own contains the resources of each package, by the package's label.
func (p *Plan) gatherResources(own map[string][]*yaml.RNode) []*yaml.RNode {
	var resources []*yaml.RNode
	for _, plan := range p.inDepth() {
		resources = append(resources, own[plan.Package.Label()]...)
	}
	return resources
}

// scatterResources distributes the output of p's functions among p and the packages inside it. It stores the resources
// in the map own, whose keys are package labels. A resource with the label of an unknown package is assigned to p.
func (p *Plan) scatterResources(resources []*yaml.RNode, own map[string][]*yaml.RNode) {
	for _, plan := range p.inDepth() {
		own[plan.Package.Label()] = nil
	}
	for _, resource := range resources {
		label := resource.GetAnnotations()[pkgtree.PackageAnnotation]
		if _, known := own[label]; !known {
			label = p.Package.Label()
		}
		own[label] = append(own[label], resource)
	}
}

// runPipeline runs the functions of one package on resources, and returns the resources after the last function.
func (r *run) runPipeline(ctx context.Context, plan *Plan, resources []*yaml.RNode) ([]*yaml.RNode, error) {
	r.Observer.Entered(plan)
	before, err := r.encodeFiles(resources) // encode the resources before Mutate annotates them
	if err != nil {
		return resources, err
	}
	for _, call := range plan.Mutators {
		output, step, err := r.Mutate(ctx, call, resources)
		if err == nil {
			var after map[string][]byte
			after, err = r.encodeFiles(output)
			step.Changes = pkgtree.Diff(before, after)
			before = after
		}
		r.result.Mutations = append(r.result.Mutations, step)
		if err != nil {
			return resources, err
		}
		resources = output
	}
	for _, call := range plan.Validators {
		step, err := r.Validate(ctx, call, resources)
		r.result.Validations = append(r.result.Validations, step)
		if err != nil {
			return resources, err
		}
	}
	return resources, nil
}

// encodeFiles returns the files with these resources, by path. It returns nil if Renderer.Files is not set.
func (r *Renderer) encodeFiles(resources []*yaml.RNode) (map[string][]byte, error) {
	if r.Files == nil {
		return nil, nil
	}
	return r.Files(resources)
}
