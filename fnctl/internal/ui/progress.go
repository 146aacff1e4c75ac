// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"errors"
	"fmt"

	"github.com/krm-function-runner/function-runner/fnctl/internal/client"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
	"github.com/krm-function-runner/function-runner/fnctl/internal/result"
	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
)

// Progress shows functions as they run. It implements [pipeline.Observer].
type Progress struct {
	*Printer
	// Live replaces the line of a running function by the line of its end: for terminals only.
	Live bool

	running string // the line of the running function
}

// Entered shows a package that has functions.
func (p *Progress) Entered(plan *pipeline.Plan) {
	if len(plan.Mutators)+len(plan.Validators) > 0 {
		p.Line("Package %s", p.style.bold(title(plan.Package)))
	}
}

// title returns a package's name, and its path unless it is the outermost.
func title(pkg *pkgtree.Package) string {
	if pkg.Path == "." {
		return OneLine(pkg.Kptfile.Name)
	}
	return OneLine(fmt.Sprintf("%s in ./%s", pkg.Kptfile.Name, pkg.Path))
}

// Started shows a running function.
func (p *Progress) Started(call pipeline.Call, resources int) {
	p.running = fmt.Sprintf("  … %s on %d resources", name(call), resources)
	if p.Live {
		fmt.Fprint(p.out, p.running)
	}
}

// maxWaiting bounds the text about what a function waits for, so that it fits into the function's
// line: a line that wraps cannot be replaced.
const maxWaiting = 60

// Waiting shows what the running function waits for; empty for nothing.
func (p *Progress) Waiting(what string) {
	what = OneLine(what)
	switch {
	case !p.Live && what != "":
		p.Line("    … %s", what)
	case p.Live && what == "":
		fmt.Fprintf(p.out, "\r\x1b[K%s", p.running)
	case p.Live:
		if runes := []rune(what); len(runes) > maxWaiting {
			what = string(runes[:maxWaiting]) + "…"
		}
		fmt.Fprintf(p.out, "\r\x1b[K%s: %s", p.running, p.style.faint(what))
	}
}

// Finished shows how a function ended, with its results and its log.
func (p *Progress) Finished(call pipeline.Call, outcome pipeline.Outcome) {
	if p.Live {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
	mark := p.style.green("✓")
	if outcome.Err != nil {
		mark = p.style.red("✗")
	}
	p.Line("  %s %s %s", mark, name(call), p.style.faint(duration(outcome.Elapsed)))
	p.results(result.Results(outcome.Results))
	p.block(string(outcome.Log), p.style.faint)
	if failed, ok := errors.AsType[*client.FunctionError](outcome.Err); ok {
		p.failure(failed)
	}
}

// Skipped shows a function that did not run.
func (p *Progress) Skipped(call pipeline.Call) {
	p.Line("  - %s %s", name(call), p.style.faint("skipped: "+OneLine(call.Function.When)+" is false"))
}

// failure shows why a function failed.
func (p *Progress) failure(err *client.FunctionError) {
	f := err.Failure
	p.results(result.Results(result.FromFailure(f)))
	if n := f.GetResultsOmitted(); n > 0 {
		p.block(fmt.Sprintf("and %d more results", n), plain)
	}
	p.block(f.GetStderr(), p.style.faint)
	// The message has in one text all that the details have separately, and more unless the
	// function itself exited.
	if f.GetReason() != functionrunnerv1.FunctionFailure_REASON_EXITED || len(f.GetResults()) == 0 && f.GetStderr() == "" {
		p.block(err.Message, p.style.red)
	}
	p.block(reason(f), plain)
}

// reasons describe the failures that one sentence explains.
var reasons = map[functionrunnerv1.FunctionFailure_Reason]string{
	functionrunnerv1.FunctionFailure_REASON_NOT_STARTED:      "could not be started",
	functionrunnerv1.FunctionFailure_REASON_OUTPUT_INVALID:   "its output is not a ResourceList",
	functionrunnerv1.FunctionFailure_REASON_OUTPUT_TOO_LARGE: "stopped: it wrote more output than it may",
	functionrunnerv1.FunctionFailure_REASON_LOG_TOO_LARGE:    "stopped: it logged more than it may",
}

// reason describes how a function failed; it is empty for reasons of later versions.
func reason(f *functionrunnerv1.FunctionFailure) string {
	switch r := f.GetReason(); r {
	case functionrunnerv1.FunctionFailure_REASON_EXITED:
		return fmt.Sprintf("exit code %d", f.GetExitCode())
	case functionrunnerv1.FunctionFailure_REASON_SIGNALED:
		return "ended by signal " + f.GetSignal()
	default:
		return reasons[r]
	}
}

// name returns the function as its Kptfile names it.
func name(call pipeline.Call) string {
	if call.Function.Tag != "" {
		return OneLine(fmt.Sprintf("%s (tag %s)", call.Function.Image, call.Function.Tag))
	}
	return OneLine(call.Function.Title())
}
