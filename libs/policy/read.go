// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// read fills in what can be known of a condition without evaluating it.
func (c *condition) read(checked *cel.Ast) {
	native := checked.NativeRep()
	c.all = true
	for _, part := range conjuncts(native.Expr()) {
		if n := nodeOf(part); n != nil {
			c.parts = append(c.parts, n)
		} else {
			c.all = false
		}
		if text, err := cel.ExprToString(part, native.SourceInfo()); err == nil {
			c.texts[text] = true
		}
	}
	ast.PostOrderVisit(native.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if f, ok := fieldOf(e); ok {
			c.used[f] = true
		}
		c.usesSigners = c.usesSigners || isVariable(e, variableSigners)
	}))
}

// conjuncts returns the expressions of which e is the conjunction.
func conjuncts(e ast.Expr) []ast.Expr {
	if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.LogicalAnd {
		args := e.AsCall().Args()
		return append(conjuncts(args[0]), conjuncts(args[1])...)
	}
	return []ast.Expr{e}
}

// nodeOf returns the node that is what an expression is, nil if there is none. No node can fail.
func nodeOf(e ast.Expr) node {
	switch e.Kind() {
	case ast.LiteralKind:
		if b, ok := e.AsLiteral().(types.Bool); ok {
			return constant(b)
		}
		return nil
	case ast.CallKind:
		return callNode(e.AsCall())
	default:
		return nil
	}
}

// callNode returns the node of a call.
func callNode(call ast.CallExpr) node {
	switch args := call.Args(); call.FunctionName() {
	case operators.LogicalNot:
		if a := nodeOf(args[0]); a != nil {
			return not{a}
		}
	case operators.LogicalAnd:
		if a, b := nodeOf(args[0]), nodeOf(args[1]); a != nil && b != nil {
			return both{a, b}
		}
	case operators.LogicalOr:
		if a, b := nodeOf(args[0]), nodeOf(args[1]); a != nil && b != nil {
			return either{a, b}
		}
	case operators.In, operators.OldIn:
		return inNode(args[0], args[1])
	case "startsWith", "endsWith", "contains", "matches":
		return textNode(call)
	default:
		return comparisonNode(call.FunctionName(), args)
	}
	return nil
}

// textNode returns the node of a function of texts.
func textNode(call ast.CallExpr) node {
	if !call.IsMemberFunction() || len(call.Args()) != 1 {
		return nil
	}
	f, isField := fieldOf(call.Target())
	text, isText := textOf(call.Args()[0])
	if !isField || !isText {
		return nil
	}
	switch call.FunctionName() {
	case "startsWith":
		return hasPrefix{f, text}
	case "endsWith":
		return comparison{f, text, strings.HasSuffix}
	case "matches":
		return newExpression(f, text)
	default:
		return comparison{f, text, strings.Contains}
	}
}

// inNode returns the node of an element in a list.
func inNode(element, list ast.Expr) node {
	if text, ok := textOf(element); ok && isVariable(list, variableGroups) {
		return inGroup(text)
	} else if ok && isVariable(list, variableSigners) {
		return isSigner(text)
	}
	f, ok := fieldOf(element)
	if !ok || list.Kind() != ast.ListKind {
		return nil
	}
	var texts []string
	for _, item := range list.AsList().Elements() {
		text, ok := textOf(item)
		if !ok {
			return nil
		}
		texts = append(texts, text)
	}
	slices.Sort(texts)
	return oneOf{f, texts}
}

// comparisonNode returns the node of an operator between a variable and a constant.
func comparisonNode(operator string, args []ast.Expr) node {
	if len(args) != 2 {
		return nil
	}
	a, b := args[0], args[1]
	if a.Kind() == ast.LiteralKind {
		a, b, operator = b, a, turned(operator)
	}
	if f, ok := fieldOf(a); ok {
		text, ok := textOf(b)
		switch {
		case ok && operator == operators.Equals:
			return equals{f, text}
		case ok && operator == operators.NotEquals:
			return not{equals{f, text}}
		}
		return nil
	}
	if !isVariable(a, variableBytes) || b.Kind() != ast.LiteralKind {
		return nil
	}
	if n, ok := b.AsLiteral().(types.Int); ok {
		return sizeNode(operator, int64(n))
	}
	return nil
}

// sizeNode returns the node that compares the input's size with n.
func sizeNode(operator string, n int64) node {
	switch operator {
	case operators.Equals:
		return size(func(b int64) bool { return b == n })
	case operators.NotEquals:
		return size(func(b int64) bool { return b != n })
	case operators.Less:
		return size(func(b int64) bool { return b < n })
	case operators.LessEquals:
		return size(func(b int64) bool { return b <= n })
	case operators.Greater:
		return size(func(b int64) bool { return b > n })
	case operators.GreaterEquals:
		return size(func(b int64) bool { return b >= n })
	default:
		return nil
	}
}

// turned returns the operator for the same operands in the other order.
func turned(operator string) string {
	switch operator {
	case operators.Less:
		return operators.Greater
	case operators.LessEquals:
		return operators.GreaterEquals
	case operators.Greater:
		return operators.Less
	case operators.GreaterEquals:
		return operators.LessEquals
	default:
		return operator
	}
}

// isVariable reports whether an expression is the variable with a name.
func isVariable(e ast.Expr, name string) bool {
	return e.Kind() == ast.IdentKind && e.AsIdent() == name
}

// fieldOf returns the field that an expression is.
func fieldOf(e ast.Expr) (field, bool) {
	if e.Kind() != ast.IdentKind {
		return 0, false
	}
	i := slices.Index(variables[:], e.AsIdent())
	return field(max(i, 0)), i >= 0
}

// textOf returns the text that an expression is.
func textOf(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	text, ok := e.AsLiteral().(types.String)
	return string(text), ok
}
