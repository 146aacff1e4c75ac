// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
	"github.com/krm-function-runner/function-runner/fnctl/internal/result"
	"github.com/krm-function-runner/function-runner/libs/evalphase"
	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
)

// Progress shows the functions of a rendering while they run. It implements [pipeline.Observer].
type Progress struct {
	*Printer
	// Live replaces the line shown during a function's run by the line of its outcome. It requires a terminal.
	Live bool

	// Width returns the current number of columns of the terminal. Zero, or a nil Width, means no limit.
	Width func() int

	running string // name of the running function
	detail  string // number of the function's resources, as a phrase
	nothing bool   // true if the function's selectors match no resource

	// mu guards the fields below, and the output while a function runs.
	mu      sync.Mutex
	waiting string        // reason for which the function waits
	elapsed time.Duration // time since the function's start, in whole seconds
	stop    func()        // stops signLife and waits for its end
}

// Entered shows the name of a package before its functions run. It shows nothing for a package without functions.
func (p *Progress) Entered(plan *pipeline.Plan) {
	if len(plan.Mutators)+len(plan.Validators) > 0 {
		p.Line("Package %s", p.style.bold(p.cutEnd(packageTitle(plan.Package), len("Package "))))
	}
}

// packageTitle returns a package's name. For a package inside the rendered package, it adds the path.
func packageTitle(pkg *pkgtree.Package) string {
	if pkg.Path == "." {
		return OneLine(pkg.Kptfile.Name)
	}
	return OneLine(fmt.Sprintf("%s in ./%s", pkg.Kptfile.Name, pkg.Path))
}

// Started shows a running function.
func (p *Progress) Started(call pipeline.Call, resources int) {
	p.nothing = resources == 0 && len(call.Function.Selectors)+len(call.Function.Exclude) > 0
	p.running = OneLine(call.Function.FullTitle())
	p.detail = " on " + Count(resources, "resource")
	p.waiting, p.elapsed = "", 0
	if p.Live {
		fmt.Fprint(p.out, p.runningLine(""))
	}
	p.stop = p.signLife()
}

// quiet is the interval at which the elapsed time is shown if the output is not a terminal.
const quiet = 30 * time.Second

// signLife shows the elapsed time of the running function until stop is called. Terminals show it every second, and
// other outputs every 30 seconds.
func (p *Progress) signLife() (stop func()) {
	every := quiet
	if p.Live {
		every = time.Second
	}
	ticks, done := time.NewTicker(every), make(chan struct{})
	var showing sync.WaitGroup
	showing.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-ticks.C:
			}
			p.mu.Lock()
			p.elapsed += every
			if p.Live {
				fmt.Fprintf(p.out, "\r\x1b[K%s", p.runningLine(p.waiting))
			} else {
				p.Line("    … running for %v", p.elapsed)
			}
			p.mu.Unlock()
		}
	})
	return func() {
		ticks.Stop()
		close(done)
		showing.Wait()
	}
}

// runningLine returns the running function's line, cut to the terminal, because a wrapped line cannot be replaced.
func (p *Progress) runningLine(waiting string) string {
	const mark = "  … "
	if waiting != "" {
		waiting = ": " + waiting
	}
	detail := p.detail
	if p.elapsed > 0 {
		detail += fmt.Sprintf(", %v", p.elapsed)
	}
	rest := p.cutEnd(detail+waiting, columnsOf(mark)+min(columnsOf(p.running), p.maxColumns()/2))
	line := mark + p.cutBeginning(p.running, columnsOf(mark)+columnsOf(rest))
	shown := min(len(rest), len(detail))
	return line + rest[:shown] + p.style.faint(rest[shown:])
}

// Waiting shows why the running function waits. An empty reason means that it no longer waits.
func (p *Progress) Waiting(what string) {
	what = OneLine(what)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = what
	switch {
	case p.Live:
		fmt.Fprintf(p.out, "\r\x1b[K%s", p.runningLine(what))
	case what != "":
		p.Line("    … %s", what)
	}
}

// usualDuration is the width reserved for a duration, in columns. All lines then cut names at the same column.
const usualDuration = len("12.345s")

// Finished shows the outcome of a function, with its results and its log.
func (p *Progress) Finished(call pipeline.Call, outcome pipeline.Outcome) {
	if p.stop != nil {
		p.stop()
		p.stop = nil
	}
	if p.Live {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
	mark := p.style.green("✓")
	switch {
	case outcome.Err != nil:
		mark = p.style.red("✗")
	case slices.ContainsFunc(outcome.Results, func(r result.Record) bool { return r.Level() == result.Error }):
		mark = p.style.yellow("!")
	}
	elapsed := evalphase.Took(outcome.Elapsed)
	shown := p.cutBeginning(OneLine(call.Function.FullTitle()), len("  m  ")+max(len(elapsed), usualDuration))
	p.Line("  %s %s %s", mark, shown, p.style.faint(elapsed))
	if p.nothing {
		p.writeBlock("no resource matches its selectors", plain)
	}
	p.writeResults(outcome.Results)
	if failed, ok := errors.AsType[*pipeline.FunctionError](outcome.Err); ok {
		p.showFailure(failed) // the failure contains the log
	} else {
		p.showLog(string(outcome.Log))
	}
}

// showFailure shows the log and the reason of a function's failure.
func (p *Progress) showFailure(err *pipeline.FunctionError) {
	f := err.Failure
	if n := f.GetResultsOmitted(); n > 0 {
		p.writeBlock(fmt.Sprintf("and %d more results", n), plain)
	}
	p.showLog(f.GetStderr())
	// The error message may repeat the results, the log and the cause of a signal. We show it if there are none of these.
	// We also show it if it does not contain the log and the function failed for another reason than an exit code or a
	// signal.
	log := strings.TrimSpace(f.GetStderr())
	ended := f.GetReason() == functionrunnerv1.FunctionFailure_REASON_EXITED ||
		f.GetReason() == functionrunnerv1.FunctionFailure_REASON_SIGNALED
	said := log != "" && strings.Contains(err.Message, log)
	if (!said && !ended) || (len(err.Results) == 0 && log == "" && f.GetSignalCause() == "") {
		p.writeBlock(strings.TrimSuffix(err.Message, " ()"), p.style.red)
	}
	p.writeBlock(failureReason(f), plain)
}

// maxLog is the maximum number of lines that a terminal shows of a function's log.
const maxLog = 20

// showLog shows the log of a function. Terminals show only its end, which contains the reason of a failure.
func (p *Progress) showLog(text string) {
	all := slices.Collect(strings.Lines(strings.TrimSpace(text)))
	if left := len(all) - maxLog; p.Live && left > 0 {
		p.writeBlock(fmt.Sprintf("… %d lines before; --results-dir DIR keeps all", left), plain)
		text = strings.Join(all[left:], "")
	}
	p.writeBlock(text, p.style.faint)
}

// reasons contains the texts for users about failures without an exit code or a signal.
var reasons = map[functionrunnerv1.FunctionFailure_Reason]string{
	functionrunnerv1.FunctionFailure_REASON_NOT_STARTED:      "could not be started",
	functionrunnerv1.FunctionFailure_REASON_OUTPUT_INVALID:   "its output is not a ResourceList",
	functionrunnerv1.FunctionFailure_REASON_OUTPUT_TOO_LARGE: "stopped: it wrote more output than it may",
	functionrunnerv1.FunctionFailure_REASON_LOG_TOO_LARGE:    "stopped: it logged more than it may",
}

// failureReason explains a failure to users. It is empty for reasons that this version of fnctl does not know.
func failureReason(f *functionrunnerv1.FunctionFailure) string {
	switch r := f.GetReason(); r {
	case functionrunnerv1.FunctionFailure_REASON_EXITED:
		return fmt.Sprintf("exit code %d", f.GetExitCode())
	case functionrunnerv1.FunctionFailure_REASON_SIGNALED:
		return strings.TrimSuffix("ended by signal "+f.GetSignal()+": "+f.GetSignalCause(), ": ")
	default:
		return reasons[r]
	}
}

// terminal computes the width of characters on a terminal. It ignores the locale in the environment, unlike the
// functions of package runewidth, so that the output is the same everywhere.
var terminal = &runewidth.Condition{StrictEmojiNeutral: true}

// columnsOf returns the width of a text, in columns of a terminal.
func columnsOf(text string) int { return terminal.StringWidth(text) }

// minShown is the minimum number of columns that stay visible when a text is cut.
const minShown = 3

// maxColumns returns the usable columns of a line. The last column is unused, because some terminals wrap there.
func (p *Progress) maxColumns() int {
	if p.Width != nil {
		if width := p.Width(); width > 0 {
			return width - 1
		}
	}
	return math.MaxInt32
}

// cutEnd cuts the end of a text that is too long for its line. others is the width of all other texts on the line.
func (p *Progress) cutEnd(text string, others int) string {
	return terminal.Truncate(text, max(p.maxColumns()-others, minShown), "…")
}

// cutBeginning shortens a name that is too long for its line. It cuts the beginning, because names of images differ at
// the end. The argument others is the width of all other texts on the line.
func (p *Progress) cutBeginning(name string, others int) string {
	columnsLeft := max(p.maxColumns()-others, minShown)
	if columnsOf(name) <= columnsLeft {
		return name
	}
	return terminal.TruncateLeft(name, columnsOf(name)-columnsLeft+1, "…")
}
