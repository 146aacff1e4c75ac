// SPDX-License-Identifier: Apache-2.0

// Package podeval is the pod evaluator: it leases a pod from the pod-manager, calls the server in the pod, and reports
// the outcome when it ends the lease. If the pod fails, the evaluator retries the evaluation on another pod while the
// caller waits. A retry is safe, because functions are pure: they have no side effects.
package podeval

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalmetrics"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/podconn"
)

// Config configures an Evaluator.
type Config struct {
	// Leases grants leases on pods.
	Leases lease.Manager
	// Conns provides the connections to pods.
	Conns *podconn.Pool
	// MaxRetries is the maximum number of retries of an evaluation on other pods, after a pod has failed.
	MaxRetries int
	// ConnectTimeout limits the time for connecting to a pod that has just started. Other pods get a shorter time.
	ConnectTimeout time.Duration
	Telemetry      *telemetry.Telemetry
}

// Evaluator is the pod evaluator.
type Evaluator struct {
	cfg     Config
	log     *slog.Logger
	tracer  trace.Tracer
	metrics *metrics
}

// New returns an evaluator.
func New(cfg Config) *Evaluator {
	return &Evaluator{
		cfg: cfg, log: cfg.Telemetry.Log, tracer: cfg.Telemetry.Tracers.Tracer("gateway"),
		metrics: newMetrics(cfg.Telemetry.Meters),
	}
}

// Name implements evaluation.Evaluator.
func (e *Evaluator) Name() string { return "pod" }

// Evaluate implements evaluation.Evaluator. It never returns an error of class fault.NotFound, because the pod
// evaluator can run every image.
func (e *Evaluator) Evaluate(ctx context.Context, req evaluation.Request) (evaluation.Response, error) {
	tried := tries{began: time.Now(), backoff: samePod}
	for {
		resp, err := e.attemptOnPod(ctx, req, &tried)
		brokenPod, ok := errors.AsType[*brokenPodError](err)
		if !ok {
			return resp, err
		}
		again := tried.addAttempt(ctx, req, brokenPod)
		if tried.counted > e.cfg.MaxRetries {
			return evaluation.Response{}, fault.New(fault.Unavailable,
				"%s%w%s", evaluatePrefix(req.Given), brokenPod, tried.describePods())
		}
		if again {
			if err := tried.waitToRetry(ctx, req, brokenPod); err != nil {
				return evaluation.Response{}, err
			}
		}
		e.metrics.retries.Add(ctx, 1)
		e.log.WarnContext(ctx, "pod broken, retrying",
			"image", req.Given, "pod", brokenPod.pod, "error", excerpt.Middle(brokenPod.cause.Error(), 500))
	}
}

// attemptOnPod leases a pod and calls the function there. An error that wraps a brokenPodError means that the pod
// has failed, so that a retry on another pod may succeed.
func (e *Evaluator) attemptOnPod(
	ctx context.Context, req evaluation.Request, tried *tries,
) (evaluation.Response, error) {
	req.Measured.Attempt()
	held, err := e.leasePod(ctx, req, tried)
	if err != nil {
		return evaluation.Response{}, err
	}
	outcome, reason := lease.Abandoned, "the gateway panicked" // replaced when callPod returns
	defer func() { held.Finish(outcome, reason) }()
	granted := held.Granted()
	ctx, cancel := runLimit(granted, req).Context(ctx)
	defer cancel()
	req.Measured.On(evalmetrics.Leased{
		Pod: granted.GetPod(), Namespace: granted.GetNamespace(),
		Image: repoDigest(granted), ColdStart: granted.GetColdStart(),
	})
	resp, err := e.callPod(ctx, req, granted, tried)
	outcome, reason = leaseOutcome(ctx, err)
	return resp, err
}

// runLimit returns the time limit for the call of a function in a pod. If the pod cache configuration, a file of the
// pod-manager, contains a limit for the function, its time begins now. Otherwise the request's limit applies.
func runLimit(granted *lease.Granted, req evaluation.Request) function.TimeLimit {
	own := granted.GetMaxEvaluationTime().AsDuration()
	if own <= 0 {
		return req.Limit
	}
	return function.NewTimeLimit(own, fmt.Sprintf("maxEvaluationTime of %s in the pod cache configuration", req.Given))
}

// leaseOutcome converts the error of an attempt into the outcome that is reported to the pod-manager. The outcome
// distinguishes a failed pod, a caller that left, and everything else.
func leaseOutcome(ctx context.Context, err error) (result lease.Outcome, reason string) {
	if broken, ok := errors.AsType[*brokenPodError](err); ok {
		if broken.notCalled && lookupFailed(broken.cause) {
			return lease.Done, "name servers failed: " + broken.cause.Error()
		}
		return lease.PodBroken, broken.cause.Error()
	}
	if err != nil && ctx.Err() != nil {
		return lease.Abandoned, fmt.Sprintf("the caller did not wait any longer: %v", context.Cause(ctx))
	}
	return lease.Done, ""
}
