// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// pod bounds the concurrent evaluations of a pod's function. A plain bound is enough: callers lease the pod from a
// pod-manager, which counts them.
//
// The function may also use directories such as /tmp, as in its own container. Concurrent evaluations must not see
// each other's files there. So a function runs without these directories at first. If it is denied a file, it runs
// again alone, with the directories, which are emptied before and after. If that helps, all later evaluations run
// alone. Functions are pure, so running a function again is safe.
type pod struct {
	slots       *semaphore.Weighted
	concurrency int64
	// dirs are the paths of the directories, or empty if the function must not use them.
	dirs []string
	// empty empties the directories.
	empty func()
	// changed makes the Runner count its spare processes again: a function that runs alone gets none.
	changed func()
	// alone is true once all evaluations run alone.
	alone atomic.Bool
	// pointless is true once a function that ran alone was denied the same file as before. From then on a function runs
	// again only if its log names a directory of dirs.
	pointless atomic.Bool
}

// evaluation runs a function, with or without the directories.
type evaluation func(withDirs bool) (Result, error)

// evaluate evaluates when there is a free slot, with the directories if the function needs them.
func (p *pod) evaluate(ctx context.Context, image string, run evaluation) (Result, error) {
	if p.alone.Load() {
		return p.evaluateAlone(ctx, image, run)
	}
	first, err := p.acquire(ctx, image, 1, func() (Result, error) { return run(false) })
	if !p.mayHelp(first, err) {
		return first, err
	}
	second, againErr := p.evaluateAlone(ctx, image, run)
	if denied(second, againErr) && (err == nil || againErr != nil) {
		p.pointless.Store(true)
		return first, err
	}
	p.alone.Store(true)
	p.changed()
	return second, againErr
}

// evaluateAlone evaluates with the directories while no other evaluation runs.
func (p *pod) evaluateAlone(ctx context.Context, image string, run evaluation) (Result, error) {
	return p.acquire(ctx, image, p.concurrency, func() (Result, error) {
		p.empty()
		defer p.empty()
		return run(true)
	})
}

// acquire calls run when so many slots are free.
func (p *pod) acquire(ctx context.Context, image string, slots int64, run func() (Result, error)) (Result, error) {
	start := time.Now()
	if err := p.slots.Acquire(ctx, slots); err != nil {
		doing := "waiting for a free slot"
		if p.alone.Load() {
			doing = "an earlier evaluation was running, and the function uses /tmp, which one evaluation at a time may do"
		}
		return Result{}, Interrupted(ContextErr(ctx), image, time.Since(start), doing)
	}
	defer p.slots.Release(slots)
	return run()
}

// mayHelp reports whether a function may have failed because it could not use the directories.
func (p *pod) mayHelp(result Result, err error) bool {
	return len(p.dirs) > 0 && denied(result, err) && (!p.pointless.Load() || containsAny(logOf(result, err), p.dirs))
}

// denials are log texts of programs that were denied a file.
var denials = []string{"ermission denied", "EACCES", "AccessDenied"}

// denied reports whether a function logged that it was denied a file.
func denied(result Result, err error) bool { return containsAny(logOf(result, err), denials) }

// logOf returns the log of a function.
func logOf(result Result, err error) string {
	if failure, ok := errors.AsType[*Failure](err); ok {
		return failure.Stderr
	}
	return string(result.Log)
}

// containsAny reports whether a log contains any of the texts.
func containsAny(log string, texts []string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(log, text) })
}
