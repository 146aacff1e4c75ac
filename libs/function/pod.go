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

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// Pod runs the single function of a pod, and limits the number of concurrent evaluations. A fixed limit is enough,
// because callers lease the pod from the pod-manager, which limits the number of callers.
//
// A function first runs without access to shared writable directories such as /tmp (see [ServiceConfig.Shared]),
// because concurrent evaluations must not see each other's files there. If the function is denied access to a file, or
// fails without a log, the Pod runs it again with access. This is safe because functions are pure. During this second
// run, no other evaluation runs. Before and after it, the Pod kills spare processes and processes left behind, and
// empties the directories. If the second run helps, all later evaluations run in this way.
type Pod struct {
	*Service
	slots *semaphore.Weighted
	count int64 // number of slots
	// alone is true if each evaluation must run alone, because the function needs the shared directories such as /tmp.
	alone atomic.Bool
	// dirty is true if an evaluation that ran alone may have left processes or files. The next evaluation must first
	// remove them, and therefore also runs alone.
	dirty atomic.Bool
	// pointless is true if a second run with access to the shared directories did not help. From then on, the Pod repeats
	// a run with access only if the function's log names one of the directories.
	pointless atomic.Bool
}

// NewPod returns a pod whose function may read all files except cfg.Hidden. Callers must leave cfg.Keep empty, and must
// call either [Service.Maintain] or [Service.Close] to free the pod's resources.
func NewPod(cfg ServiceConfig) (*Pod, error) {
	slots := int64(cfg.Slots())
	p := &Pod{slots: semaphore.NewWeighted(slots), count: slots}
	cfg.inPod = true
	cfg.Keep = func(string) int {
		if p.alone.Load() {
			return 0 // evaluations that run alone cannot use processes started in advance
		}
		return cfg.Prefork
	}
	var err error
	p.Service, err = NewService(cfg)
	return p, err
}

// maxImageBytes is the maximum length of an image's name in bytes, as in package imagename. The server in a function
// pod does not parse the name, but copies it to error texts and headers.
const maxImageBytes = 1 << 10

// Evaluate runs the function as soon as the pod has a free slot. If the function seems to need shared directories such
// as /tmp, Evaluate runs it again with access to them. It returns the same results and errors as [Service.Run].
func (p *Pod) Evaluate(ctx context.Context, e Evaluation) (Result, error) {
	if len(e.Image) > maxImageBytes {
		return Result{}, fault.New(fault.Invalid,
			"the image's name has %d bytes, and may have up to %d", len(e.Image), maxImageBytes)
	}
	if p.alone.Load() {
		return p.runInSlot(ctx, e, true)
	}
	first, err := p.runInSlot(ctx, e, false)
	if !p.mayHelp(first, err) {
		return first, err
	}
	second, againErr := p.runInSlot(ctx, e, true)
	if !hasHelped(err, second, againErr) {
		if againErr == nil || exited(againErr) { // a killed or interrupted run proves nothing
			p.pointless.Store(true)
		}
		return first, err
	}
	p.alone.Store(true)
	p.Changed() // removes spare processes, which evaluations that run alone cannot use
	return second, againErr
}

// runInSlot waits for a free slot and runs a function. If alone is true, it waits until no other evaluation runs, and
// gives the function access to shared directories such as /tmp.
func (p *Pod) runInSlot(ctx context.Context, e Evaluation, alone bool) (Result, error) {
	slots := int64(1)
	if alone {
		slots = p.count
	}
	start := time.Now()
	if err := p.slots.Acquire(ctx, slots); err != nil {
		doing := "waiting for a free slot"
		if p.alone.Load() {
			doing = "an earlier evaluation was running, and the function uses /tmp, which one evaluation at a time may do"
		}
		return Result{}, Interrupted(ContextErr(ctx), e.Image, time.Since(start), doing)
	}
	if !alone && (p.alone.Load() || p.dirty.Load()) { // changed during the wait for a slot
		p.slots.Release(slots)
		return p.runInSlot(ctx, e, true)
	}
	defer p.slots.Release(slots)
	if e.Command.Shared = alone; alone {
		if !p.emptyShared() {
			return Result{}, fault.New(fault.Unavailable, "processes or files of earlier evaluations are left (delete the pod)")
		}
		p.dirty.Store(false)
		defer func() { p.dirty.Store(!p.emptyShared()) }()
	}
	return p.Run(ctx, e)
}

// emptyShared empties the shared directories. It first kills the processes that could still write to the directories.
// It also kills the spare processes, because their temporary directories are usually below /tmp. It returns false if
// processes of earlier evaluations may still run, or if files are left. Callers must ensure that no evaluation runs.
func (p *Pod) emptyShared() bool {
	p.Forget(func(string) bool { return true })
	none := p.reaper.KillOrphans()
	return p.confiner.EmptyShared() && none
}

// mayHelp reports whether the function may succeed if it runs again with access to shared directories such as /tmp.
func (p *Pod) mayHelp(result Result, err error) bool {
	dirs := p.cfg.Shared
	return len(dirs) > 0 && (wasDenied(result, err) || isSilent(err)) &&
		(!p.pointless.Load() || containsAny(logOf(result, err), dirs))
}

// hasHelped reports whether access to the shared directories helped the function in its second run. If so, the second
// run either succeeded, or failed for another reason than the first run. The first run's error is err.
func hasHelped(err error, second Result, againErr error) bool {
	if againErr == nil {
		return err != nil || !wasDenied(second, nil)
	}
	return err != nil && exited(againErr) && !wasDenied(second, againErr) && !isSilent(againErr)
}

// denials contains texts that appear in a function's log if it was denied access to a file.
var denials = []string{"ermission denied", "EACCES", "AccessDenied"}

// wasDenied reports whether a function logged that it was denied access to a file.
func wasDenied(result Result, err error) bool { return containsAny(logOf(result, err), denials) }

// isSilent reports whether a function exited with an error but wrote neither a log nor results. Programs that use
// kyaml's framework fail silently if they do not print its error, for example after they were denied access to a file.
func isSilent(err error) bool {
	failure, _ := errors.AsType[*Failure](err)
	return exited(err) && strings.TrimSpace(failure.Stderr) == "" && len(failure.Results) == 0
}

// exited reports whether a function failed by itself, and was neither killed nor interrupted.
func exited(err error) bool {
	failure, ok := errors.AsType[*Failure](err)
	return ok && failure.Reason == Exited
}

func logOf(result Result, err error) string {
	if failure, ok := errors.AsType[*Failure](err); ok {
		return failure.Stderr
	}
	return string(result.Log)
}

func containsAny(log string, texts []string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(log, text) })
}
