// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/krm-function-runner/function-runner/fnctl/internal/kptfile"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
	"github.com/krm-function-runner/function-runner/fnctl/internal/result"
	"github.com/krm-function-runner/function-runner/fnctl/internal/ui"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
)

func TestProgress(t *testing.T) {
	call := pipeline.Call{Function: kptfile.Function{Image: "fn", Tag: "~1"}}
	for name, tc := range map[string]struct {
		reason  string
		outcome pipeline.Outcome
		want    string
	}{
		"success": {
			"the worst comes first",
			pipeline.Outcome{Elapsed: 12345 * time.Microsecond, Log: []byte("log\n"), Results: []result.Record{
				{Severity: "info", Message: "i"},
				{Severity: "error", Message: "e\nmore"},
				{Severity: "warning", Message: "w"},
			}},
			"  ! fn (tag ~1) 12ms\n      [error] e\n      more\n      [warning] w\n      [info] i\n      log\n",
		},
		"escape sequences": {
			"a function must not be able to rewrite the screen",
			pipeline.Outcome{Log: []byte("a\x1b[2Jb\r\n\tc")},
			"  ✓ fn (tag ~1) 0s\n      ab\n      \tc\n",
		},
		"hidden characters": {
			"a text must not look like another one",
			pipeline.Outcome{
				Log: []byte("rm\u202efig\u2066x\u200b"), Results: []result.Record{{Severity: "error", Message: "pay\u200bpal"}},
			},
			"  ! fn (tag ~1) 0s\n      [error] pay\\u200bpal\n      rm\\u202efig\\u2066x\\u200b\n",
		},
		"signal": {
			"a killed function has no exit code", failed(&functionrunnerv1.FunctionFailure{
				Reason: functionrunnerv1.FunctionFailure_REASON_SIGNALED, Signal: "killed", ResultsOmitted: 2,
			}),
			"  ✗ fn (tag ~1) 1.234s\n      and 2 more results\n      message\n      ended by signal killed\n",
		},
		"cause of a signal": {
			"the log does not say it, and the message would say it again", failed(&functionrunnerv1.FunctionFailure{
				Reason: functionrunnerv1.FunctionFailure_REASON_SIGNALED, Signal: "killed", SignalCause: "out of memory: …",
				Stderr: "boom\n",
			}),
			"  ✗ fn (tag ~1) 1.234s\n      boom\n      ended by signal killed: out of memory: …\n",
		},
		"cause of a signal without a log": {
			"the message would say it again", failed(&functionrunnerv1.FunctionFailure{
				Reason: functionrunnerv1.FunctionFailure_REASON_SIGNALED, Signal: "killed", SignalCause: "out of memory: …",
			}),
			"  ✗ fn (tag ~1) 1.234s\n      ended by signal killed: out of memory: …\n",
		},
		"exit code": {
			"the message would say the same again", failed(&functionrunnerv1.FunctionFailure{
				Reason: functionrunnerv1.FunctionFailure_REASON_EXITED, ExitCode: 3, Stderr: "boom\n",
			}),
			"  ✗ fn (tag ~1) 1.234s\n      boom\n      exit code 3\n",
		},
		"no details": {"the message is all there is", failed(nil), "  ✗ fn (tag ~1) 1.234s\n      message\n"},
		"other problem": {
			"the last line of the output has the reason",
			pipeline.Outcome{Err: errors.New("lost")},
			"  ✗ fn (tag ~1) 0s\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			p := &ui.Progress{Printer: ui.NewPrinter(&out, false)}
			p.Started(call, 3)
			p.Finished(call, tc.outcome)
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("progress (-want +got), %s:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSignsOfLife runs a function for a while, on a terminal and elsewhere.
func TestSignsOfLife(t *testing.T) {
	for live, want := range map[bool]string{
		true:  "\r\x1b[K  … fn on 2 resources, 3s: pulling",
		false: "    … running for 30s\n    … running for 1m0s\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			p := &ui.Progress{Printer: ui.NewPrinter(&out, false), Live: live}
			call := pipeline.Call{Function: kptfile.Function{Image: "fn"}}
			p.Started(call, 2)
			p.Waiting("pulling")
			<-time.After(61 * time.Second)
			p.Finished(call, pipeline.Outcome{})
			if !strings.Contains(out.String(), want) {
				t.Errorf("live %t: it shows %q, want %q", live, out.String(), want)
			}
		})
	}
}

// failed returns the outcome of a function that failed after a while.
func failed(failure *functionrunnerv1.FunctionFailure) pipeline.Outcome {
	return pipeline.Outcome{
		Elapsed: 1234 * time.Millisecond,
		Err:     &pipeline.FunctionError{Message: "message", Failure: failure},
	}
}

func TestProgressOnTerminals(t *testing.T) {
	var out bytes.Buffer
	p := &ui.Progress{Printer: ui.NewPrinter(&out, true), Live: true}
	call := pipeline.Call{Function: kptfile.Function{Image: "fn"}}
	p.Started(call, 3)
	p.Finished(call, pipeline.Outcome{Elapsed: 2 * time.Millisecond})
	want := "  … fn on 3 resources\r\x1b[K  \x1b[32m✓\x1b[0m fn \x1b[2m2ms\x1b[0m\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}

// TestTerminalsShowTheEndOfALog has a function that logs 22 lines before it fails.
func TestTerminalsShowTheEndOfALog(t *testing.T) {
	var log strings.Builder
	for i := range 22 {
		fmt.Fprintf(&log, "line %d.\n", i+1)
	}
	outcome := failed(&functionrunnerv1.FunctionFailure{Stderr: log.String()})
	const pointer = "      … 2 lines before; --results-dir DIR keeps all\n      line 3.\n"
	for _, live := range []bool{true, false} {
		var out bytes.Buffer
		p := &ui.Progress{Printer: ui.NewPrinter(&out, false), Live: live}
		p.Finished(pipeline.Call{}, outcome)
		shown := strings.Count(out.String(), "line ")
		if want := map[bool]int{true: 20, false: 22}[live]; shown != want || strings.Contains(out.String(), pointer) != live {
			t.Errorf("live %t: %d lines, want %d, in\n%s", live, shown, want, out.String())
		}
	}
}

// osc52 makes many terminals write to the clipboard.
const osc52 = "\x1b]52;c;eA==\a"

// TestNothingMakesTerminalsAct shows a package from elsewhere, whose names contain terminal
// sequences.
func TestNothingMakesTerminalsAct(t *testing.T) {
	var out bytes.Buffer
	p := &ui.Progress{Printer: ui.NewPrinter(&out, false)}
	call := pipeline.Call{Function: kptfile.Function{Image: "fn", Tag: osc52 + "\n1"}}
	p.Entered(&pipeline.Plan{
		Package:  &pkgtree.Package{Path: "sub\x9b2J" + osc52, Kptfile: &kptfile.Kptfile{Name: osc52 + "\n✓ name"}},
		Mutators: []pipeline.Call{call},
	})
	p.Entered(&pipeline.Plan{
		Package:  &pkgtree.Package{Path: ".", Kptfile: &kptfile.Kptfile{Name: osc52}},
		Mutators: []pipeline.Call{call},
	})
	p.Started(call, 1)
	p.Finished(call, pipeline.Outcome{})
	p.Diff([]pkgtree.Change{{Path: osc52 + ".yaml", Before: []byte("a\rb\nc\r\n"), After: []byte("a: " + osc52 + "\n")}})
	want := "Package ]52;c;eA== ✓ name in ./sub\ufffd2J]52;c;eA==\n" +
		"Package ]52;c;eA==\n" +
		"  ✓ fn (tag ]52;c;eA== 1) 0s\n" +
		"diff \"a/\\033]52;c;eA==\\007.yaml\" \"b/\\033]52;c;eA==\\007.yaml\"\n" +
		"--- \"a/\\033]52;c;eA==\\007.yaml\"\n+++ \"b/\\033]52;c;eA==\\007.yaml\"\n" +
		"@@ -1,2 +1,1 @@\n-ab\n-c\r\n+a: ]52;c;eA==\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("progress and diff (-want +got):\n%s", diff)
	}
	out.Reset()
	p.Live = true
	p.Started(call, 1)
	p.Waiting("a\nb")
	want = "  … fn (tag ]52;c;eA== 1) on 1 resource\r\x1b[K  … fn (tag ]52;c;eA== 1) on 1 resource: a b"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("progress of a running function (-want +got):\n%s", diff)
	}
}

func TestDiffInColour(t *testing.T) {
	var out bytes.Buffer
	ui.NewPrinter(&out, true).Diff([]pkgtree.Change{{Path: "a", Before: []byte("x\n"), After: []byte("y\n")}})
	want := "\x1b[1mdiff a/a b/a\x1b[0m\n\x1b[1m--- a/a\x1b[0m\n\x1b[1m+++ b/a\x1b[0m\n" +
		"\x1b[36m@@ -1,1 +1,1 @@\x1b[0m\n\x1b[31m-x\x1b[0m\n\x1b[32m+y\x1b[0m\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("diff (-want +got):\n%s", diff)
	}
}

// TestFunctionsCannotAct runs a function whose whole output contains terminal sequences.
func TestFunctionsCannotAct(t *testing.T) {
	const evil = "\x1b[31mred\x1b[0m \u009b2J\x1b[?25l" + osc52 + "\u0085\r"
	const tame = "red ]52;c;eA=="
	var out bytes.Buffer
	p := &ui.Progress{Printer: ui.NewPrinter(&out, false)}
	failed := &pipeline.FunctionError{Image: "fn", Message: evil, Failure: &functionrunnerv1.FunctionFailure{
		Reason: functionrunnerv1.FunctionFailure_REASON_SIGNALED, Signal: evil, Stderr: evil,
	}}
	results := []result.Record{{
		Severity: evil, Message: evil, ResourceRef: &result.Reference{Kind: evil},
		Field: &result.Field{Path: evil}, File: &result.File{Path: evil},
	}}
	p.Finished(pipeline.Call{}, pipeline.Outcome{Err: failed, Results: results, Log: []byte(evil)})
	if strings.ContainsFunc(out.String(), func(r rune) bool { return unicode.IsControl(r) && r != '\n' }) {
		t.Errorf("control characters are left in %q", out.String())
	}
	if !strings.Contains(out.String(), "      "+tame+"\n") || strings.Contains(out.String(), "[31m") {
		t.Errorf("shown:\n%s\nwant the text without colours", out.String())
	}
}

func TestJSONIsShown(t *testing.T) {
	key := &podmanagerv1.PoolKey{Reference: "ü\u009b2J\x1b[2J\x7f\u0085"}
	if got, want := ui.JSON(key, "  "), "{\n  \"reference\": \"ü\\u009b2J\\u001b[2J\\u007f\\u0085\"\n}"; got != want {
		t.Errorf("JSON %q, want %q", got, want)
	}
}
