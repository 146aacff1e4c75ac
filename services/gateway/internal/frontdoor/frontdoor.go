// SPDX-License-Identifier: Apache-2.0

// Package frontdoor answers callers: it checks a request, resolves its image name,
// has it evaluated, and measures all that.
package frontdoor

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/membudget"
	"github.com/krm-function-runner/function-runner/libs/retry"
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/measure"
)

// Namer resolves image names.
type Namer interface {
	Resolve(ctx context.Context, image, constraint string) (imagename.Name, error)
}

// Config is what a Handler works with.
type Config struct {
	Names Namer
	// Chain evaluates requests.
	Chain evaluation.Chain
	// MaxMessageBytes bounds each request, and MaxInHandBytes, the memory budget, all that
	// are in memory at a time, with their outputs.
	MaxMessageBytes, MaxInHandBytes int64
	// MaxInHandWait is how long a request may be queued for the memory budget.
	MaxInHandWait time.Duration
	// LogFunctionOutput puts into the log what functions that failed wrote.
	LogFunctionOutput bool
	// MaxEvaluationTime is how long an evaluation may take from when its request was read;
	// zero is any time.
	MaxEvaluationTime time.Duration
	// MaxTimeSetting is the name of the setting of MaxEvaluationTime.
	MaxTimeSetting string
	Telemetry      *telemetry.Telemetry
}

// Handler implements Porch's FunctionEvaluator service.
type Handler struct {
	names      Namer
	chain      evaluation.Chain
	log        *slog.Logger
	tracer     trace.Tracer
	metrics    *metrics
	logOutput  bool
	maxMessage int64
	maxTime    time.Duration
	setting    string // of maxTime
	budget     *membudget.Budget
}

// New returns a handler. It has to be served through [Handler.Bounded].
func New(cfg Config) (*Handler, error) {
	tel := cfg.Telemetry
	h := &Handler{
		names: cfg.Names, chain: cfg.Chain, log: tel.Log, tracer: tel.Tracers.Tracer("gateway"),
		logOutput: cfg.LogFunctionOutput, maxMessage: cfg.MaxMessageBytes,
		maxTime: cfg.MaxEvaluationTime, setting: "the gateway's setting " + cfg.MaxTimeSetting,
		budget: membudget.New(cfg.MaxInHandBytes, cfg.MaxInHandWait),
	}
	var err error
	if h.metrics, err = newMetrics(tel.Meters, h.budget.Reserved); err != nil {
		return nil, err
	}
	return h, nil
}

// EvaluateFunction implements the service.
func (h *Handler) EvaluateFunction(
	ctx context.Context, req *evaluator.EvaluateFunctionRequest,
) (*evaluator.EvaluateFunctionResponse, error) {
	ctx, span := h.tracer.Start(ctx, "fn.evaluate", trace.WithAttributes(attribute.String("faas.name", req.GetImage())))
	defer span.End()
	start := time.Now()
	var resolving measure.Resolving
	name, resp, err := h.evaluate(ctx, req, &resolving)
	h.metrics.phases.Took(ctx, "resolve", resolving.Total())
	requestBytes := len(req.GetResourceList())
	req.ResourceList = nil // what is reserved from here on is the answer alone
	err = h.answer(ctx, resp, err)
	if err != nil {
		span.SetStatus(codes.Error, fault.Of(err).String())
	}
	h.report(ctx, req.GetImage(), sample{
		image: name, evaluator: resp.Evaluator, err: err, results: resp.Results, took: time.Since(start),
		requestBytes: requestBytes, responseBytes: len(resp.ResourceList),
	})
	if err != nil {
		return nil, err
	}
	return &evaluator.EvaluateFunctionResponse{ResourceList: resp.ResourceList, Log: resp.Log}, nil
}

// droppedError is why an answer was dropped: the function has run, and its caller gets this.
type droppedError struct{ error }

// Unwrap returns the error for the caller.
func (e *droppedError) Unwrap() error { return e.error }

// answer waits until the answer to an evaluation that ended with err may be written, and
// returns err, or a [*droppedError] if it may not.
func (h *Handler) answer(ctx context.Context, resp evaluation.Response, err error) error {
	held := membudget.Of(ctx)
	if err != nil {
		held.Evaluated(0)
		return err
	}
	if err := held.Answer(ctx, int64(len(resp.ResourceList)+len(resp.Log))); err != nil {
		return &droppedError{err}
	}
	return nil
}

// evaluate checks the request and has it evaluated. It returns the name of the image as
// far as it was resolved, and adds to resolving how long that took.
func (h *Handler) evaluate(
	ctx context.Context, req *evaluator.EvaluateFunctionRequest, resolving *measure.Resolving,
) (imagename.Name, evaluation.Response, error) {
	limit := function.NewTimeLimit(h.maxTime, h.setting)
	name, err := h.prepare(ctx, limit, req, resolving)
	if err != nil {
		return name, evaluation.Response{}, err
	}
	resp, err := h.chain.Evaluate(ctx, evaluation.Request{
		Given: req.GetImage(), Image: name, ResourceList: req.GetResourceList(), Caller: rpcserve.Caller(ctx), Limit: limit,
		Resolving: resolving,
	})
	return name, resp, function.Resolved(err, name.String())
}

// prepare resolves the image's name and checks the input, within the limit.
func (h *Handler) prepare(
	ctx context.Context, limit function.TimeLimit, req *evaluator.EvaluateFunctionRequest, resolving *measure.Resolving,
) (imagename.Name, error) {
	ctx, cancel := limit.Context(ctx)
	defer cancel()
	name, took, err := h.resolve(ctx, limit, req)
	resolving.Add(took)
	if err != nil {
		return name, err
	}
	return name, function.CheckInput(ctx, req.GetImage(), req.GetResourceList())
}

// resolve gives the image its canonical name, once for all evaluators. ctx is within the limit.
func (h *Handler) resolve(
	ctx context.Context, limit function.TimeLimit, req *evaluator.EvaluateFunctionRequest,
) (name imagename.Name, took time.Duration, err error) {
	ctx, span := h.tracer.Start(ctx, "fn.resolve")
	defer span.End()
	start := time.Now()
	name, err = h.names.Resolve(ctx, req.GetImage(), req.GetTag())
	took = time.Since(start)
	span.SetAttributes(attribute.String("container.image.name", name.String()))
	switch {
	case err != nil && ctx.Err() != nil:
		err = function.Left(function.ContextErr(ctx), req.GetImage(), took, "looking up the image's tag")
	case fault.Of(err) == fault.DeadlineExceeded && retry.NearDeadline(ctx):
		err = function.Left(limit.Explain(ctx, err), req.GetImage(), took, "looking up the image's tag")
	}
	return name, took, err
}

// report measures and logs one evaluation of an image as the caller named it.
func (h *Handler) report(ctx context.Context, image string, s sample) {
	h.metrics.evaluated(ctx, s)
	level := levelOf(s.err)
	if !h.log.Enabled(ctx, level) {
		return
	}
	attrs := []any{
		"image", image, "resolved", s.image.String(), "evaluator", s.evaluator, "took", s.took,
		"request_bytes", s.requestBytes, "response_bytes", s.responseBytes,
	}
	if s.err != nil {
		h.log.Log(ctx, level, "evaluation failed", append(attrs, h.failed(s.err)...)...)
		return
	}
	h.log.Log(ctx, level, "evaluated", attrs...)
}

// failed returns what the log has of an error. The text of a function's failure has what
// the function wrote, which may be secret: the log has it only if that is wanted, or if no
// function was started.
func (h *Handler) failed(err error) []any {
	class := fault.Of(err).String()
	failure, ok := errors.AsType[*function.Failure](err)
	if !ok || h.logOutput || failure.Reason == function.NotStarted {
		return []any{"class", class, "error", err}
	}
	return []any{
		"class", class, "reason", failure.Reason.String(), "exit_code", failure.ExitCode, "signal", failure.Signal,
	}
}

// Bounded returns next, which serves h, with its requests in the memory budget.
func (h *Handler) Bounded(next http.Handler) http.Handler {
	return h.budget.Bounded(h.maxMessage, h.refused, next)
}

// refused measures and logs a request that was not read to its end.
func (h *Handler) refused(ctx context.Context, err error) {
	h.metrics.rejected(ctx, err)
	h.log.Log(ctx, levelOf(err), "request refused", "class", fault.Of(err).String(), "error", err)
}

// levelOf returns the level at which the end of an evaluation is logged: warnings and
// errors are for operators, not for what the function or the caller did wrong.
func levelOf(err error) slog.Level {
	if err == nil {
		return slog.LevelDebug
	}
	if _, ok := errors.AsType[*function.Failure](err); ok {
		return slog.LevelInfo
	}
	switch fault.Of(err) {
	case fault.Internal:
		return slog.LevelError
	case fault.Precondition, fault.Exhausted, fault.Unavailable:
		return slog.LevelWarn
	default:
		return slog.LevelInfo
	}
}
