// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"fmt"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/kptfile"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
)

// Plan lists what runs for a package and the packages inside it.
type Plan struct {
	Package *pkgtree.Package
	// Subpackages come first, in this order.
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

// Functions counts the functions of a plan and of those inside it.
func (p *Plan) Functions() int {
	n := len(p.Mutators) + len(p.Validators)
	for _, sub := range p.Subpackages {
		n += sub.Functions()
	}
	return n
}

// Packages counts the packages of a plan.
func (p *Plan) Packages() int {
	n := 1
	for _, sub := range p.Subpackages {
		n += sub.Packages()
	}
	return n
}

// NewPlan determines what runs for a package. It reports every error that can be found without
// running a function; an invalid field as a [kptfile.FieldError].
func NewPlan(pkg *pkgtree.Package) (*Plan, error) {
	// A package without subpackages has only one order.
	if pkg.Kptfile.ParentsFirst && len(pkg.Subpackages) > 0 {
		return nil, &kptfile.FieldError{
			File: pkg.Kptfile.File, Field: "metadata.annotations." + kptfile.ParentsFirstAnnotation, Value: "true",
			Reason: "is not supported: to run the functions of the packages inside first, as usual, could do harm; render " +
				"this package with kpt",
		}
	}
	return newPlan(pkg)
}

// newPlan is NewPlan for a package that may be inside another one.
func newPlan(pkg *pkgtree.Package) (*Plan, error) {
	plan := &Plan{Package: pkg}
	for _, sub := range pkg.Subpackages {
		subplan, err := newPlan(sub)
		if err != nil {
			return nil, err
		}
		plan.Subpackages = append(plan.Subpackages, subplan)
	}
	if err := CheckInput(pkg.Resources); err != nil {
		return nil, fmt.Errorf("package %s: %w", pkg.Kptfile.Name, err)
	}
	var err error
	pipeline := pkg.Kptfile.Pipeline
	if plan.Mutators, err = newCalls(pkg, "mutators", pipeline.Mutators); err != nil {
		return nil, err
	}
	plan.Validators, err = newCalls(pkg, "validators", pipeline.Validators)
	return plan, err
}

func newCalls(pkg *pkgtree.Package, list string, functions []kptfile.Function) ([]Call, error) {
	var calls []Call
	for i, f := range functions {
		fail := func(field, value, reason string) error {
			return &kptfile.FieldError{
				File:  pkg.Kptfile.File,
				Field: fmt.Sprintf("pipeline.%s[%d].%s", list, i, field), Value: value, Reason: reason,
			}
		}
		switch {
		case f.Exec != "":
			return nil, fail("exec", f.Exec,
				"cannot run: the function runner runs images, not programs of this machine; use image")
		case f.Condition != "":
			return nil, fail("condition", f.Condition,
				"is not supported: to run the function whatever the condition says could do harm; render this package with kpt")
		}
		config, err := newConfig(pkg, f)
		if err != nil {
			return nil, fail("configPath", f.ConfigPath, err.Error())
		}
		calls = append(calls, Call{Package: pkg, Function: f, Config: config})
	}
	return calls, nil
}
