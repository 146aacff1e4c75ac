// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/kptfile"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
)

// Plan lists the functions to run for a package and the packages inside it.
type Plan struct {
	Package *pkgtree.Package
	// Subpackages are the plans of the packages directly inside this package, sorted by path.
	Subpackages []*Plan
	// Mutators and Validators are the package's own functions, in order.
	Mutators, Validators []Call
}

// Call is a function to run, with the package whose pipeline names it.
type Call struct {
	Package  *pkgtree.Package
	Function kptfile.Function
	// Config is the function's configuration. It is nil if the function has none.
	Config *yaml.RNode

	// places contains the file annotations of each resource before a mutator runs. kyaml numbers the resources in an
	// annotation while the mutator runs, and these numbers are the keys of places. For a validator, places is nil.
	places map[string]map[string]string
}

// isSelective reports whether the function has selectors or exclusions, so that it receives only some resources.
func (c Call) isSelective() bool {
	return len(c.Function.Selectors) > 0 || len(c.Function.Exclude) > 0
}

// Packages counts the packages of a plan.
func (p *Plan) Packages() int { return len(p.inDepth()) }

// ImageTag is an image and its separate tag or version constraint, as in a Kptfile.
type ImageTag struct{ Image, Tag string }

// Images returns the distinct images of the functions of a package and of all packages inside it.
func (p *Plan) Images() []ImageTag {
	var images []ImageTag
	for _, plan := range p.inDepth() {
		for _, call := range slices.Concat(plan.Mutators, plan.Validators) {
			image := ImageTag{call.Function.Image, call.Function.Tag}
			if image.Image != "" && !slices.Contains(images, image) {
				images = append(images, image)
			}
		}
	}
	return images
}

// Options are the user's permissions and preferences for a rendering.
type Options struct {
	// AllowExec permits functions that are programs of this machine. They run without a sandbox.
	AllowExec bool
	// ImagePrefix is prepended to images without a slash. If it is empty, the gateway prepends its own prefix.
	ImagePrefix string
}

// PlanError reports a function that cannot run, before any function of the rendering has run.
type PlanError struct {
	// Call is the function that cannot run.
	Call Call
	// IsValidator is true if the pipeline lists the function as a validator.
	IsValidator bool
	Err         error
}

func (e *PlanError) Error() string { return e.Err.Error() }

func (e *PlanError) Unwrap() error { return e.Err }

// Rendering returns a rendering with only the function that cannot run, so that reports contain this function.
func (e *PlanError) Rendering() *Rendering {
	step := []Step{{Call: e.Call, Outcome: Outcome{Err: e.Err}}}
	if e.IsValidator {
		return &Rendering{Validations: step}
	}
	return &Rendering{Mutations: step}
}

// NewPlan determines the functions to run for a package and the packages inside it. It reports invalid fields
// ([kptfile.FieldError]) and functions that cannot run ([PlanError]) before any function runs.
func NewPlan(pkg *pkgtree.Package, options Options) (*Plan, error) {
	plan := &Plan{Package: pkg}
	for _, sub := range pkg.Subpackages {
		subplan, err := NewPlan(sub, options)
		if err != nil {
			return nil, err
		}
		plan.Subpackages = append(plan.Subpackages, subplan)
	}
	var err error
	pipeline := pkg.Kptfile.Pipeline
	if plan.Mutators, err = options.newCalls(pkg, kptfile.Mutators, pipeline.Mutators); err != nil {
		return nil, err
	}
	if plan.Validators, err = options.newCalls(pkg, kptfile.Validators, pipeline.Validators); err != nil {
		return nil, err
	}
	if err := CheckInput(pkg.Resources); err != nil {
		return nil, unplannedError(pkg, fmt.Errorf("package %s: %w", pkg.Kptfile.Name, err))
	}
	return plan, nil
}

// ReadPlan reads a package and determines the functions to run, before any function runs.
func ReadPlan(dir string, options Options) (*pkgtree.Tree, *Plan, error) {
	tree, err := pkgtree.Read(dir)
	if err != nil {
		return nil, nil, err
	}
	plan, err := NewPlan(tree.Root, options)
	return tree, plan, err
}

// unplannedError assigns an error about a package's resources to the package's first function. It returns a [PlanError]
// of this function, because reports list errors by function. If there are no functions, it returns err.
func unplannedError(pkg *pkgtree.Package, err error) error {
	p := pkg.Kptfile.Pipeline
	for _, f := range slices.Concat(p.Mutators, p.Validators) {
		return &PlanError{Call: Call{Package: pkg, Function: f}, IsValidator: len(p.Mutators) == 0, Err: err}
	}
	return err
}

func (o Options) newCalls(pkg *pkgtree.Package, list string, functions []kptfile.Function) ([]Call, error) {
	var calls []Call
	for i, f := range functions {
		call, err := o.NewCall(pkg, f)
		if invalid, ok := errors.AsType[*kptfile.FieldError](err); ok {
			invalid.File = pkg.Kptfile.File
			invalid.Field = fmt.Sprintf("pipeline.%s[%d].%s", list, i, invalid.Field)
			if invalid.Value == f.Exec {
				err = &PlanError{Call: Call{Package: pkg, Function: f}, IsValidator: list == kptfile.Validators, Err: err}
			}
		}
		if err != nil {
			return nil, err
		}
		calls = append(calls, call)
	}
	return calls, nil
}

// NewCall checks that a function of a package can run, and reads its configuration. It reports an invalid field as a
// [kptfile.FieldError]. Callers must set File in this error.
func (o Options) NewCall(pkg *pkgtree.Package, f kptfile.Function) (Call, error) {
	if f.Exec != "" && !o.AllowExec {
		return Call{}, &kptfile.FieldError{
			Field: "exec", Value: f.Exec,
			Reason: "is a program of this machine: if you trust the package, permit it by --allow-exec",
		}
	}
	f.Image = o.FullName(f.Image)
	config, err := newConfig(pkg, f)
	if err != nil {
		return Call{}, &kptfile.FieldError{Field: "configPath", Value: f.ConfigPath, Reason: err.Error()}
	}
	return Call{Package: pkg, Function: f, Config: config}, nil
}

// FullName prepends the user's prefix to an image, unless the image's name contains a slash.
func (o Options) FullName(image string) string {
	if o.ImagePrefix == "" || image == "" || strings.Contains(image, "/") {
		return image
	}
	return strings.TrimSuffix(o.ImagePrefix, "/") + "/" + image
}
