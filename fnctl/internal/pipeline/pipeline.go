// SPDX-License-Identifier: Apache-2.0

// Package pipeline runs the functions of a package tree as `kpt fn render` does. Mutators run before validators,
// and inner packages before outer packages unless the outermost Kptfile reverses their order.
//
// [NewPlan] determines the functions to run, before anything runs. A [Renderer] runs them through an [Evaluator].
package pipeline

import (
	"context"
	"slices"
	"time"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
	"github.com/krm-function-runner/function-runner/fnctl/internal/result"
)

// Evaluator runs a function once. Its error is a [FunctionError] if the function ran and failed.
type Evaluator interface {
	Evaluate(ctx context.Context, req Request) (Response, error)
}

// Request is the input of an evaluation.
type Request struct {
	// Image and Tag identify the function's image, as in the Kptfile.
	Image, Tag string
	// Exec is a program of this machine with its arguments, instead of an image.
	Exec string
	// ResourceList is the function's input, as YAML.
	ResourceList []byte
	// Waiting shows the user the reason for the function's wait, such as the start of its pod. Evaluators must not call
	// it after they return.
	Waiting func(what string)
}

// Response is the output of a function. If the function failed, it may be incomplete or empty.
type Response struct {
	// ResourceList is the function's output.
	ResourceList []byte
	// Log is the function's standard error.
	Log []byte
}

// Observer shows the progress of a rendering to the user. All methods except Waiting are called from one goroutine.
type Observer interface {
	// Entered is called for each package before the functions of its pipeline run.
	Entered(plan *Plan)
	// Started is called before a function runs on the given number of resources.
	Started(call Call, resources int)
	// Waiting is called between Started and Finished, from any goroutine, with the reason for the function's wait.
	Waiting(what string)
	// Finished is called after a function ran or failed.
	Finished(call Call, outcome Outcome)
}

// Outcome is the result of a function's evaluation, with its duration, its messages, its log and its error.
type Outcome struct {
	// Elapsed is the duration of the evaluation, as the client measured it.
	Elapsed time.Duration
	// Results are the messages of the function about resources, such as warnings.
	Results []result.Record
	// Log is the function's standard error.
	Log []byte
	// Err is nil if the function succeeded.
	Err error

	output []byte
}

// Renderer runs the functions of packages.
type Renderer struct {
	Evaluator Evaluator
	Observer  Observer
	// Timeout is the maximum duration of each evaluation. 0 means no limit.
	Timeout time.Duration
	// Jobs is the maximum number of packages that are rendered concurrently. 0 means 1.
	Jobs int
	// Files encodes resources as files, and returns the contents by path. If it is nil, [Step.Changes] is nil too.
	Files func([]*yaml.RNode) (map[string][]byte, error)
}

// Rendering is the outcome of running a plan's functions.
type Rendering struct {
	// Resources are the resources of all packages. After an error, they contain no changes of the failed function, and
	// no resources of packages that the rendering did not reach.
	Resources []*yaml.RNode
	// Mutations and Validations are the functions that ran, in order. After an error, the failed function is the last.
	Mutations, Validations []Step
}

// Step is a function that ran, or that could not be started, with its outcome.
type Step struct {
	Call    Call
	Outcome Outcome
	// Changes are the files that a mutator changed. They are nil unless [Renderer.Files] is set.
	Changes []pkgtree.Change
}

// Steps returns all functions that ran, mutators first.
func (r *Rendering) Steps() []Step { return slices.Concat(r.Mutations, r.Validations) }
