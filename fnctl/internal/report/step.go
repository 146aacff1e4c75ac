// SPDX-License-Identifier: Apache-2.0

// Package report writes reports about renderings: results.yaml and the status of a Kptfile, as kpt does, and formats
// for CI systems.
package report

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/krm-function-runner/function-runner/fnctl/internal/client"
	"github.com/krm-function-runner/function-runner/fnctl/internal/kptfile"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	"github.com/krm-function-runner/function-runner/fnctl/internal/result"
	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
)

// entry describes a function that ran, or that could not be run.
type entry struct {
	image, exec string
	stderr      string
	exitCode    int
	results     []result.Record
	// problem is the reason why the function did not run, or why its output cannot be used.
	problem string
}

// newEntry describes a step.
func newEntry(step pipeline.Step) entry {
	f, outcome := step.Call.Function, step.Outcome
	e := entry{
		image: kptfile.ImageName(f.Image, f.Tag), exec: f.Exec, stderr: string(outcome.Log), results: outcome.Results,
	}
	if failed, ok := errors.AsType[*client.FunctionError](outcome.Err); ok {
		details := failed.Failure
		e.stderr = details.GetStderr()
		e.results = result.FromFailure(details)
		e.exitCode = cmp.Or(int(details.GetExitCode()), 1)
		if details.GetReason() == functionrunnerv1.FunctionFailure_REASON_SIGNALED {
			e.exitCode = -1
		}
		if details == nil {
			e.stderr = failed.Message // the runner sends no other text
		}
	} else if outcome.Err != nil {
		e.problem = problem(outcome.Err)
		e.exitCode = 1
	}
	if f.Exec == "" {
		// kpt stores logs of containers without the last newline.
		e.stderr = strings.TrimSuffix(e.stderr, "\n")
	}
	return e
}

// problem returns the reason of a failure, without advice to the user of a terminal.
func problem(err error) string {
	if call, ok := errors.AsType[*client.CallError](err); ok {
		return call.Problem
	}
	return err.Error()
}

// failure describes a failed entry in a line. It is empty if the function succeeded.
func (e entry) failure(name string) string {
	name = cmp.Or(name, e.image, e.exec)
	switch {
	case e.problem != "":
		return name + ": " + e.problem
	case e.exitCode != 0:
		return fmt.Sprintf("%s: exit code %d", name, e.exitCode)
	}
	return ""
}

// errorResults returns the results of severity error.
func (e entry) errorResults() []result.Record {
	var worst []result.Record
	for _, r := range e.results {
		if r.Severity == string(result.Error) {
			worst = append(worst, r)
		}
	}
	return worst
}
