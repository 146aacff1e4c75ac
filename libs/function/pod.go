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

// pod limits the concurrent evaluations of a function in a pod. A fixed limit is enough, because the pod-manager,
// from which callers lease the pod, limits the number of callers.
//
// A function may also need writable directories such as /tmp. Concurrent evaluations must not see each other's files
// there, so that a function first runs without access to these directories. If the function is denied a file, it runs
// again, alone and with access to the directories, which are emptied before and after. If that helps, all later
// evaluations run alone. Running a function again is safe, because functions are pure.
type pod struct {
	slots       *semaphore.Weighted
	concurrency int64
	// dirs contains the paths of the directories. It is empty if the function must never use them.
	dirs []string
	// empty empties the directories.
	empty func()
	// changed tells the Runner that the number of spare processes has changed: when evaluations begin to run alone,
	// the number becomes 0.
	changed func()
	// alone is true once all evaluations run alone.
	alone atomic.Bool
	// pointless is true once a function was denied a file although it ran alone with the directories. From then on, a
	// function runs again only if its log names one of dirs.
	pointless atomic.Bool
}

// evaluation runs a function. It lets the function write to the directories if withDirs is true.
type evaluation func(withDirs bool) (Result, error)

// evaluate calls run when a slot is free. If the function may need the directories, it calls run again, with them.
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

// evaluateAlone calls run with the directories, while no other evaluation runs.
func (p *pod) evaluateAlone(ctx context.Context, image string, run evaluation) (Result, error) {
	return p.acquire(ctx, image, p.concurrency, func() (Result, error) {
		p.empty()
		defer p.empty()
		return run(true)
	})
}

// acquire waits until the given number of slots is free, occupies them and calls run.
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

// mayHelp reports whether running the function again with the directories may help.
func (p *pod) mayHelp(result Result, err error) bool {
	return len(p.dirs) > 0 && denied(result, err) && (!p.pointless.Load() || containsAny(logOf(result, err), p.dirs))
}

// denials contains texts that programs log when they are denied a file.
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
