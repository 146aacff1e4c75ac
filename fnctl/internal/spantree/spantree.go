// SPDX-License-Identifier: Apache-2.0

// Package spantree formats the phases of an evaluation as a tree of spans with bars.
package spantree

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
)

// Call is an evaluation from the view of the caller.
type Call struct {
	// Function is the function's name in the call.
	Function string
	TraceID  string
	Took     time.Duration
	// Evaluation is the gateway's record of the evaluation. It is nil if the gateway has no record.
	Evaluation *gatewayv1.Evaluation
	// Missing is the reason for a nil Evaluation.
	Missing string
}

// span is a line of the tree.
type span struct {
	name         string
	offset, took time.Duration // offset counts from the start of the call
	waits        string
	children     []*span
}

// Lines returns the tree in lines of at most width columns. Zero means no limit.
func (c Call) Lines(width int) []string {
	p := printer{total: max(c.Took, 1), width: width}
	p.line("Trace " + c.TraceID)
	p.line("  " + c.Function)
	if c.Evaluation == nil {
		p.line("  no spans: " + c.Missing)
		return p.lines
	}
	p.line("  " + describe(c.Evaluation))
	p.span(c.root(), "  ", "  ")
	return p.lines
}

func (c Call) root() *span {
	e := c.Evaluation
	took := e.GetDuration().AsDuration()
	// The clocks of the two machines may differ: we put half of the remaining time before the gateway's span, and half
	// after it.
	gateway := &span{name: "gateway", offset: max(c.Took-took, 0) / 2, took: took}
	attempts := map[int32]*span{}
	for _, phase := range e.GetPhases() {
		s := &span{
			name: phase.GetName(), offset: gateway.offset + phase.GetOffset().AsDuration(),
			took: phase.GetDuration().AsDuration(), waits: phase.GetReason(),
		}
		parent := gateway
		if n := phase.GetAttempt(); n > 0 && e.GetAttempts() > 1 {
			if attempts[n] == nil {
				attempts[n] = &span{name: fmt.Sprintf("attempt %d", n), offset: s.offset}
				gateway.children = append(gateway.children, attempts[n])
			}
			parent = attempts[n]
			parent.took = s.offset + s.took - parent.offset
		}
		parent.children = append(parent.children, s)
	}
	return &span{name: "call", took: c.Took, children: []*span{gateway}}
}

// describe returns a line about an evaluation: its evaluator or error code, its pod and its reason.
func describe(e *gatewayv1.Evaluation) string {
	parts := []string{cmp.Or(e.GetEvaluator(), e.GetCode())}
	if e.GetPod() != "" {
		parts = append(parts, e.GetPod())
	}
	if e.GetColdStart() {
		parts = append(parts, "cold start")
	}
	if e.GetReason() != "" {
		parts = append(parts, e.GetReason())
	}
	return strings.Join(parts, ", ")
}
