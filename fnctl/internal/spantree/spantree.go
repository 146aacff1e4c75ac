// SPDX-License-Identifier: Apache-2.0

// Package spantree shows the duration of each phase of an evaluation as a tree of spans, for the flag --trace.
package spantree

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/krm-function-runner/function-runner/libs/evalphase"
	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
)

// Call is an evaluation with the duration that the caller measured, and the gateway's record of it.
type Call struct {
	// Function is the image as the caller named it.
	Function string
	TraceID  string
	Took     time.Duration
	// Evaluation is the gateway's record of the evaluation. It is nil if the gateway has no record.
	Evaluation *gatewayv1.Evaluation
	// Missing is the reason why Evaluation is nil, as text for users.
	Missing string
}

// span is a function call or one of the call's phases. It is printed as a line of the tree.
type span struct {
	name         string
	offset, took time.Duration // offset counts from the start of the call
	waits        string
	children     []*span
}

// Lines formats the tree of phases as lines of at most width columns. A width of zero means no limit.
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
	// The start of the gateway's span is unknown, because the clocks of the gateway and of the caller may differ. We
	// assume that the time outside of the gateway passed in equal parts before and after the span.
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

// describe summarizes an evaluation in a line, with its evaluator or error code, its pod and its failure.
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

const (
	nameColumns = 18 // name and branches of the tree
	barColumns  = 24
)

// printer writes spans as lines.
type printer struct {
	total time.Duration
	width int
	lines []string
}

// line appends a line to the output, cut to the width of the terminal.
func (p *printer) line(text string) {
	if p.width > 0 {
		text = runewidth.Truncate(text, p.width-1, "…")
	}
	p.lines = append(p.lines, text)
}

// span appends the line of a span and the lines of its children. The text indent begins the span's own line, and the
// text below begins the lines of the children.
func (p *printer) span(s *span, indent, below string) {
	line := fmt.Sprintf("%-*s %9s  %s", nameColumns, indent+s.name, evalphase.Took(s.took), p.bar(s))
	p.line(strings.TrimRight(line+"  "+s.waits, " "))
	for i, child := range s.children {
		if i == len(s.children)-1 {
			p.span(child, below+"└ ", below+"  ")
		} else {
			p.span(child, below+"├ ", below+"│ ")
		}
	}
}

// bar draws the start and duration of a span as a bar on the time scale of the call. A short span gets a single column.
func (p *printer) bar(s *span) string {
	column := func(d time.Duration) int {
		return min(int(float64(d)/float64(p.total)*barColumns+.5), barColumns)
	}
	from := min(column(s.offset), barColumns-1)
	to := max(column(s.offset+s.took), from+1)
	return strings.Repeat("·", from) + strings.Repeat("█", to-from) + strings.Repeat("·", barColumns-to)
}
