// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"

	"github.com/krm-function-runner/function-runner/libs/caller"
	"github.com/krm-function-runner/function-runner/libs/signer"
)

// maxCost bounds what a condition costs at most, in CEL's units, which is known before it runs: an
// evaluation of this cost takes about a millisecond.
const maxCost = 100_000

// condition is a compiled condition.
type condition struct {
	// parts are what the condition is the conjunction of, as far as they are comparisons that need no
	// interpreter; all is set if there is nothing else.
	parts []node
	all   bool
	// program is the whole condition; nil if all is set.
	program cel.Program
	texts   map[string]bool // of the parts of the conjunction, for comparison with other rules
	used    [fields]bool
	// usesSigners reports whether it depends on who has signed an image.
	usesSigners bool
	// never is why the condition holds for no call; empty if it may hold.
	never string
}

// compileCondition compiles a condition. An empty one always holds.
func compileCondition(env *cel.Env, text string) (condition, error) {
	if text == "" {
		return condition{all: true}, nil
	}
	ast, issues := env.Compile(text)
	if err := issues.Err(); err != nil {
		return condition{}, fmt.Errorf("it is not a condition in CEL: %w", err)
	}
	if !ast.OutputType().IsExactType(cel.BoolType) {
		return condition{}, fmt.Errorf("it has to be true or false, but is of type %s", ast.OutputType())
	}
	cost, err := env.EstimateCost(ast, sizes{})
	if err != nil {
		return condition{}, fmt.Errorf("estimate what it costs: %w", err)
	}
	if cost.Max > maxCost {
		return condition{}, fmt.Errorf("it may cost %d units, and %d is the most: use fewer or shorter loops",
			cost.Max, maxCost)
	}
	c := condition{texts: map[string]bool{}}
	c.read(ast)
	if c.never, err = neverHolds(env, ast); err != nil {
		return condition{}, err
	}
	if !c.all {
		c.program, err = env.Program(ast, cel.EvalOptions(cel.OptOptimize))
	}
	return c, err
}

// holds reports whether the condition is true of v.
func (c *condition) holds(v *values) (bool, error) {
	for _, part := range c.parts {
		if !part.eval(v) {
			return false, nil
		}
	}
	if c.all {
		return true, nil
	}
	result, _, err := c.program.Eval(v)
	if err != nil {
		return false, err
	}
	holds, ok := result.Value().(bool)
	if !ok {
		return false, errors.New("it is neither true nor false")
	}
	return holds, nil
}

// uses reports whether the condition depends on a field.
func (c *condition) uses(f field) bool { return c.used[f] }

// neverHolds returns why a condition is false whatever the call. One that fails for each call is an error.
func neverHolds(env *cel.Env, ast *cel.Ast) (string, error) {
	program, err := env.Program(ast, cel.EvalOptions(cel.OptPartialEval))
	if err != nil {
		return "", err
	}
	unknown := []*cel.AttributePatternType{
		cel.AttributePattern(variableGroups), cel.AttributePattern(variableSigners), cel.AttributePattern(variableBytes),
	}
	for _, name := range variables {
		unknown = append(unknown, cel.AttributePattern(name))
	}
	vars, err := cel.PartialVars(map[string]any{}, unknown...)
	if err != nil {
		return "", err
	}
	result, _, err := program.Eval(vars)
	if err != nil {
		return "", fmt.Errorf("it fails for each call: %w", err)
	}
	if result == types.False {
		return "its condition is false for each call", nil
	}
	return "", nil
}

// sizes are the greatest sizes of variables, by which the cost of conditions is estimated.
type sizes struct{}

// maxTextSize is the greatest size of texts: identities have no longer ones.
const maxTextSize = caller.MaxIDBytes

// EstimateSize implements CEL's estimator.
func (sizes) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	switch path := element.Path(); {
	case len(path) == 0:
		return nil
	case path[0] == variableGroups && len(path) == 1:
		return &checker.SizeEstimate{Max: caller.MaxGroups}
	case path[0] == variableSigners && len(path) == 1:
		return &checker.SizeEstimate{Max: signer.MaxSigners}
	case path[0] == variableSigners:
		return &checker.SizeEstimate{Max: signer.MaxNameBytes}
	case path[0] == variableGroups:
		return &checker.SizeEstimate{Max: caller.MaxGroupBytes}
	default:
		return &checker.SizeEstimate{Max: maxTextSize}
	}
}

// EstimateCallCost implements CEL's estimator: calls cost what CEL takes them to cost.
func (sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}
