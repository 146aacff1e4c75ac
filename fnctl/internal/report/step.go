// SPDX-License-Identifier: Apache-2.0

// Package report describes renderings in the forms that kpt gives them: the file results.yaml, and
// the status of a Kptfile.
package report

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/krm-function-runner/function-runner/fnctl/internal/client"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	"github.com/krm-function-runner/function-runner/fnctl/internal/result"
)

// entry describes one function that ran or failed to.
type entry struct {
	image, exec string
	stderr      string
	exitCode    int
	results     []result.Record
	// problem is why the function did not run, or why its output cannot be used.
	problem string
}

// newEntry describes a step.
func newEntry(step pipeline.Step) entry {
	f, outcome := step.Call.Function, step.Outcome
	e := entry{image: ImageName(f.Image, f.Tag), exec: f.Exec, stderr: string(outcome.Log), results: outcome.Results}
	if failed, ok := errors.AsType[*client.FunctionError](outcome.Err); ok {
		details := failed.Failure
		e.stderr, e.results = cmp.Or(details.GetStderr(), failed.Message), result.FromFailure(details)
		e.exitCode = cmp.Or(int(details.GetExitCode()), 1)
	} else if outcome.Err != nil {
		e.problem, e.exitCode = outcome.Err.Error(), 1
	}
	if f.Exec == "" {
		// As kpt keeps what containers log.
		e.stderr = strings.TrimSuffix(e.stderr, "\n")
	}
	return e
}

// failure describes a failed entry in one line; empty if it did not fail.
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

// catalog is kpt's own prefix of images without a repository, which gateways have as well unless
// they are told otherwise.
const catalog = "ghcr.io/kptdev/krm-functions-catalog/"

// exactTag matches tags; other values of the field are constraints.
var exactTag = regexp.MustCompile(`^[\w][\w.-]{0,127}$`)

// ImageName returns an image's full name as kpt writes it, as far as it is known without the
// gateway: a tag that is a constraint is left out.
func ImageName(image, tag string) string {
	if image == "" {
		return ""
	}
	if !strings.Contains(image, "/") {
		image = catalog + image
	}
	slash := strings.LastIndexByte(image, '/')
	named, _, _ := strings.Cut(image[slash:], "@")
	switch {
	case exactTag.MatchString(tag):
		named, _, _ = strings.Cut(named, ":")
		return image[:slash] + named + ":" + tag
	case tag == "" && !strings.ContainsAny(image[slash:], ":@"):
		return image + ":latest"
	}
	return image
}
