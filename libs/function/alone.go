// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/krm-function-runner/function-runner/libs/fnproc"
)

// sharedDirs lets the function of a pod use directories such as /tmp, as it could in a container of its own.
// Evaluations that run at the same time must not see each other's files there. So a function begins without these
// directories. Once it was denied something, it runs again alone, with the directories, which are emptied before and
// after. If that helps, all later evaluations run one at a time. Functions are pure: it does no harm to run one again.
type sharedDirs struct {
	paths       []string
	evaluations *semaphore.Weighted
	// empty empties the directories.
	empty func()
	// changed has the number of spare processes decided again: a function that runs alone has none.
	changed func()
	needed  atomic.Bool
	// unneeded is true once a function that ran alone was denied the same as before. Only what names one of the
	// directories counts from then on.
	unneeded atomic.Bool
}

// all is the weight of an evaluation that runs alone.
const all = math.MaxInt64

func newSharedDirs(paths []string, empty, changed func()) *sharedDirs {
	return &sharedDirs{paths: paths, evaluations: semaphore.NewWeighted(all), empty: empty, changed: changed}
}

// run runs the command, with the directories if it needs them. A nil sharedDirs has none.
func (d *sharedDirs) run(
	ctx context.Context, image string, cmd fnproc.Command, run func(fnproc.Command) (Result, error),
) (Result, error) {
	switch {
	case d == nil:
		return run(cmd)
	case d.needed.Load():
		return d.runAlone(ctx, image, cmd, run)
	}
	first, err := d.acquire(ctx, image, 1, func() (Result, error) { return run(cmd) })
	if !d.mayHelp(first, err) {
		return first, err
	}
	second, againErr := d.runAlone(ctx, image, cmd, run)
	if denied(second, againErr) && (err == nil || againErr != nil) {
		d.unneeded.Store(true)
		return first, err
	}
	d.needed.Store(true)
	d.changed()
	return second, againErr
}

// runAlone runs the command with the directories.
func (d *sharedDirs) runAlone(
	ctx context.Context, image string, cmd fnproc.Command, run func(fnproc.Command) (Result, error),
) (Result, error) {
	cmd.Shared = true
	return d.acquire(ctx, image, all, func() (Result, error) {
		d.empty()
		defer d.empty()
		return run(cmd)
	})
}

// acquire calls run when there is capacity for an evaluation of a weight.
func (d *sharedDirs) acquire(
	ctx context.Context, image string, weight int64, run func() (Result, error),
) (Result, error) {
	start := time.Now()
	if err := d.evaluations.Acquire(ctx, weight); err != nil {
		return Result{}, Interrupted(ContextErr(ctx), image, time.Since(start),
			"an earlier evaluation was running, and the function uses /tmp, which one evaluation at a time may do")
	}
	defer d.evaluations.Release(weight)
	return run()
}

// mayHelp reports whether a function may have failed because it had none of the directories.
func (d *sharedDirs) mayHelp(result Result, err error) bool {
	return denied(result, err) && (!d.unneeded.Load() || contains(logOf(result, err), d.paths))
}

// denials are how programs log that they were denied a file.
var denials = []string{"ermission denied", "EACCES", "AccessDenied"}

// denied reports whether a function has logged that it was denied something.
func denied(result Result, err error) bool { return contains(logOf(result, err), denials) }

// logOf returns what a function has logged.
func logOf(result Result, err error) string {
	if failure, ok := errors.AsType[*Failure](err); ok {
		return failure.Stderr
	}
	return string(result.Log)
}

// contains reports whether a log contains one of some texts.
func contains(log string, texts []string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(log, text) })
}
