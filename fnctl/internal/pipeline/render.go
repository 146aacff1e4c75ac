// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
)

// Render runs the functions of a plan and of the plans inside it. The first error ends it; the
// rendering up to there is returned with the error.
func (r *Renderer) Render(ctx context.Context, plan *Plan) (*Rendering, error) {
	if !plan.Package.Kptfile.ParentsFirst {
		return r.innerFirst(ctx, plan)
	}
	run := &run{Renderer: r, result: &Rendering{}}
	var err error
	run.result.Resources, err = run.outerFirst(ctx, plan)
	return run.result, err
}

// run is one rendering.
type run struct {
	*Renderer
	result *Rendering
}

// outerFirst renders a package and then the packages inside it, level by level. Each gets its own
// resources and those of the packages inside it. It runs one package after the other: a package may move resources to
// any other.
func (r *run) outerFirst(ctx context.Context, root *Plan) ([]*yaml.RNode, error) {
	levels := root.byLevel()
	own := make(map[string][]*yaml.RNode, len(levels)) // by the label of the package
	for _, plan := range levels {
		own[plan.Package.Label()] = plan.Package.Resources
	}
	var failed error
	for _, plan := range levels {
		var output []*yaml.RNode
		output, failed = r.pipeline(ctx, plan, plan.gather(own))
		plan.scatter(output, own)
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

// byLevel returns the plan and those inside it, outer ones first.
func (p *Plan) byLevel() []*Plan {
	levels := []*Plan{p}
	for i := 0; i < len(levels); i++ {
		levels = append(levels, levels[i].Subpackages...)
	}
	return levels
}

// inDepth returns the plan and those inside it, each followed by those inside it.
func (p *Plan) inDepth() []*Plan {
	plans := []*Plan{p}
	for _, sub := range p.Subpackages {
		plans = append(plans, sub.inDepth()...)
	}
	return plans
}

// gather returns the resources of a package and of those inside it.
func (p *Plan) gather(own map[string][]*yaml.RNode) []*yaml.RNode {
	var resources []*yaml.RNode
	for _, plan := range p.inDepth() {
		resources = append(resources, own[plan.Package.Label()]...)
	}
	return resources
}

// scatter is the opposite of gather. Resources of unknown packages go to the package itself.
func (p *Plan) scatter(resources []*yaml.RNode, own map[string][]*yaml.RNode) {
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

// pipeline runs a package's own functions on resources.
func (r *run) pipeline(ctx context.Context, plan *Plan, resources []*yaml.RNode) ([]*yaml.RNode, error) {
	r.Observer.Entered(plan)
	before, err := r.files(resources) // functions mark resources while they run
	if err != nil {
		return resources, err
	}
	for _, call := range plan.Mutators {
		output, step, err := r.Mutate(ctx, call, resources)
		if err == nil {
			step.Changes, before, err = r.changes(before, output)
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

// files encodes resources, if the user wants to see what functions change.
func (r *Renderer) files(resources []*yaml.RNode) (map[string][]byte, error) {
	if r.Files == nil {
		return nil, nil
	}
	return r.Files(resources)
}

// changes returns how a function changed the files of a package and of the packages inside it, and the files after it.
func (r *Renderer) changes(before map[string][]byte, output []*yaml.RNode) (
	changes []pkgtree.Change, after map[string][]byte, err error,
) {
	after, err = r.files(output)
	return pkgtree.Diff(before, after), after, err
}
