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

// Plan lists what runs for a package and the packages inside it.
type Plan struct {
	Package *pkgtree.Package
	// Subpackages are those of the package's subpackages, in their order.
	Subpackages []*Plan
	// Mutators and Validators are the package's own functions, in order.
	Mutators, Validators []Call
}

// Call is one function to run, with the package that asks for it.
type Call struct {
	Package  *pkgtree.Package
	Function kptfile.Function
	// Config is the function's configuration; nil if it has none.
	Config *yaml.RNode

	// places are the annotations with the places of resources before a mutator ran, by a number
	// that each resource carries; nil for a validator.
	places map[string]map[string]string
}

// selective reports whether the function gets only some of the resources.
func (c Call) selective() bool {
	return len(c.Function.Selectors) > 0 || len(c.Function.Exclude) > 0
}

// Packages counts the packages of a plan.
func (p *Plan) Packages() int {
	n := 1
	for _, sub := range p.Subpackages {
		n += sub.Packages()
	}
	return n
}

// ImageTag is an image and the tag or constraint beside it, as a Kptfile names them.
type ImageTag struct{ Image, Tag string }

// Images returns the images of a plan, in order, each once.
func (p *Plan) Images() []ImageTag {
	var images []ImageTag
	add := func(image ImageTag) {
		if image.Image != "" && !slices.Contains(images, image) {
			images = append(images, image)
		}
	}
	for _, sub := range p.Subpackages {
		for _, image := range sub.Images() {
			add(image)
		}
	}
	for _, call := range slices.Concat(p.Mutators, p.Validators) {
		add(ImageTag{call.Function.Image, call.Function.Tag})
	}
	return images
}

// Options are what the user permits and prefers.
type Options struct {
	// AllowExec permits programs of this machine as functions.
	AllowExec bool
	// ImagePrefix is put before images without a slash; empty to leave that to the gateway.
	ImagePrefix string
}

// PlanError is an error of a function whose package cannot be planned.
type PlanError struct {
	// Call is the function that cannot run.
	Call Call
	// IsValidator is true if it is in the list of validators.
	IsValidator bool
	Err         error
}

func (e *PlanError) Error() string { return e.Err.Error() }

func (e *PlanError) Unwrap() error { return e.Err }

// Rendering returns what came of a plan that could not be made.
func (e *PlanError) Rendering() *Rendering {
	step := []Step{{Call: e.Call, Outcome: Outcome{Err: e.Err}}}
	if e.IsValidator {
		return &Rendering{Validations: step}
	}
	return &Rendering{Mutations: step}
}

// NewPlan determines what runs for a package. It reports every error that can be found without
// running a function; an invalid field as a [kptfile.FieldError], and an error of a function as a [PlanError].
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
	if plan.Mutators, err = options.calls(pkg, kptfile.Mutators, pipeline.Mutators); err != nil {
		return nil, err
	}
	if plan.Validators, err = options.calls(pkg, kptfile.Validators, pipeline.Validators); err != nil {
		return nil, err
	}
	if err := CheckInput(pkg.Resources); err != nil {
		return nil, unplanned(pkg, fmt.Errorf("package %s: %w", pkg.Kptfile.Name, err))
	}
	return plan, nil
}

// unplanned returns the error of a package whose resources no function can get, as that of its first function.
func unplanned(pkg *pkgtree.Package, err error) error {
	p := pkg.Kptfile.Pipeline
	for _, f := range slices.Concat(p.Mutators, p.Validators) {
		return &PlanError{Call: Call{Package: pkg, Function: f}, IsValidator: len(p.Mutators) == 0, Err: err}
	}
	return err
}

func (o Options) calls(pkg *pkgtree.Package, list string, functions []kptfile.Function) ([]Call, error) {
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

// NewCall prepares a function of a package. It reports an invalid field as a [kptfile.FieldError]
// without a file.
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

// FullName returns an image with the prefix, if it has no repository of its own.
func (o Options) FullName(image string) string {
	if o.ImagePrefix == "" || image == "" || strings.Contains(image, "/") {
		return image
	}
	return strings.TrimSuffix(o.ImagePrefix, "/") + "/" + image
}
