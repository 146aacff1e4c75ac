// SPDX-License-Identifier: Apache-2.0

// Package podeval is the pod evaluator: it gets a lease on a function pod, calls the pod's
// wrapper server, and ends the lease with the outcome.
//
// Functions are pure, so an evaluation whose pod broke is tried again on another one
// as long as its caller waits.
package podeval

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/measure"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/podconn"
)

// Config is what the evaluator works with.
type Config struct {
	// Leases grants leases on pods.
	Leases lease.Manager
	// Conns keeps the connections to them.
	Conns *podconn.Pool
	// MaxRetries is how many further pods an evaluation may try after one broke.
	MaxRetries int
	// ConnectTimeout is how long a new pod may take until there is a connection.
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
func New(cfg Config) (*Evaluator, error) {
	m, err := newMetrics(cfg.Telemetry.Meters)
	if err != nil {
		return nil, err
	}
	return &Evaluator{cfg: cfg, log: cfg.Telemetry.Log, tracer: cfg.Telemetry.Tracers.Tracer("gateway"), metrics: m}, nil
}

// Name implements evaluation.Evaluator.
func (e *Evaluator) Name() string { return "pod" }

// Evaluate implements evaluation.Evaluator. No error is of class fault.NotFound: any
// image may be one that a pod can run.
func (e *Evaluator) Evaluate(ctx context.Context, req evaluation.Request) (evaluation.Response, error) {
	tried := tries{began: time.Now(), backoff: samePod}
	for {
		resp, err := e.attempt(ctx, req, &tried)
		brokenPod, ok := errors.AsType[*brokenPodError](err)
		if !ok {
			return resp, err
		}
		again := tried.add(ctx, req, brokenPod)
		if tried.counted > e.cfg.MaxRetries {
			return evaluation.Response{}, fault.New(fault.Unavailable,
				"%s%w%s", evaluatePrefix(req.Given), brokenPod, tried.describe())
		}
		if again {
			if err := tried.wait(ctx, req, brokenPod); err != nil {
				return evaluation.Response{}, err
			}
		}
		e.metrics.retries.Add(ctx, 1)
		e.log.WarnContext(ctx, "pod broken; trying another",
			"image", req.Given, "pod", brokenPod.pod, "error", brokenPod.cause)
	}
}

// attempt evaluates on a pod that was not tried yet, if there is one. An error with a brokenPodError in
// its chain may go away on another pod.
func (e *Evaluator) attempt(ctx context.Context, req evaluation.Request, tried *tries) (evaluation.Response, error) {
	req.Measured.Attempt()
	held, err := e.lease(ctx, req, tried)
	if err != nil {
		return evaluation.Response{}, err
	}
	granted := held.Granted()
	ctx, cancel := limit(granted, req).Context(ctx)
	defer cancel()
	req.Measured.On(measure.Leased{
		Pod: granted.GetPod(), Namespace: granted.GetNamespace(),
		Image: repoDigest(granted), ColdStart: granted.GetColdStart(),
	})
	resp, err := e.call(ctx, req, granted, tried)
	held.Finish(outcome(ctx, err))
	return resp, err
}

// limit returns the limit for the run of a function in a pod: its own, which counts from
// now, or that of the request.
func limit(granted *lease.Granted, req evaluation.Request) function.TimeLimit {
	own := granted.GetMaxEvaluationTime().AsDuration()
	if own <= 0 {
		return req.Limit
	}
	return function.NewTimeLimit(own, fmt.Sprintf("maxEvaluationTime of %s in the pod cache configuration", req.Given))
}

// outcome returns what an attempt that ended with err found out about its pod.
func outcome(ctx context.Context, err error) (result lease.Outcome, reason string) {
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
