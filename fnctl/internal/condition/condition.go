// SPDX-License-Identifier: Apache-2.0

// Package condition evaluates the CEL expressions that decide whether a function of a pipeline
// runs.
package condition

import (
	"context"
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

const (
	// maxCost bounds an evaluation, in CEL's units, as in kpt: about a tenth of a second. A
	// package from elsewhere must not keep this machine busy.
	maxCost = 1_000_000
	// checkEvery is how often loops check whether the context has ended.
	checkEvery = 100
)

// Condition is a compiled expression. The zero Condition always holds.
type Condition struct{ program cel.Program }

// Compile compiles an expression over the list "resources", which must be true or false. An empty
// expression gives the zero Condition.
func Compile(expression string) (Condition, error) {
	if expression == "" {
		return Condition{}, nil
	}
	env, err := newEnv()
	if err != nil {
		return Condition{}, err
	}
	ast, issues := env.Compile(expression)
	if err := issues.Err(); err != nil {
		return Condition{}, fmt.Errorf("is not a CEL expression: %w", err)
	}
	if !ast.OutputType().IsExactType(cel.BoolType) {
		return Condition{}, fmt.Errorf("must be true or false, but is of type %s", ast.OutputType())
	}
	program, err := env.Program(ast, cel.CostLimit(maxCost), cel.InterruptCheckFrequency(checkEvery))
	return Condition{program}, err
}

// newEnv has the variable and the extensions that kpt gives to expressions.
func newEnv() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable("resources", cel.ListType(cel.DynType)),
		cel.HomogeneousAggregateLiterals(),
		cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true),
		cel.OptionalTypes(),
		ext.Strings(ext.StringsVersion(2)),
		ext.Sets(),
		ext.TwoVarComprehensions(),
		ext.Lists(ext.ListsVersion(3)),
	)
}

// Holds reports whether the condition is true of resources.
func (c Condition) Holds(ctx context.Context, resources []*yaml.RNode) (bool, error) {
	if c.program == nil {
		return true, nil
	}
	values := make([]any, 0, len(resources))
	for _, r := range resources {
		var value map[string]any
		if err := r.YNode().Decode(&value); err != nil {
			return false, fmt.Errorf("read %s %s: %w", r.GetKind(), r.GetName(), err)
		}
		values = append(values, value)
	}
	result, _, err := c.program.ContextEval(ctx, map[string]any{"resources": values})
	if err != nil {
		return false, err
	}
	holds, _ := result.Value().(bool)
	return holds, nil
}
