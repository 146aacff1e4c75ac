// Package frontdoor answers callers: it checks a request, resolves its image name,
// has it evaluated, and measures all that.
package frontdoor

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
)

// Namer resolves image names.
type Namer interface {
	Resolve(ctx context.Context, image, constraint string) (imagename.Name, error)
}

// Handler implements Porch's FunctionEvaluator service.
type Handler struct {
	names   Namer
	chain   evaluation.Chain
	log     *slog.Logger
	tracer  trace.Tracer
	metrics *metrics
}

// New returns a handler that has requests evaluated by chain.
func New(names Namer, chain evaluation.Chain, tel *telemetry.Telemetry) (*Handler, error) {
	m, err := newMetrics(tel.Meters)
	if err != nil {
		return nil, err
	}
	return &Handler{names: names, chain: chain, log: tel.Log, tracer: tel.Tracers.Tracer("gateway"), metrics: m}, nil
}

// EvaluateFunction implements the service.
func (h *Handler) EvaluateFunction(ctx context.Context, req *evaluator.EvaluateFunctionRequest) (*evaluator.EvaluateFunctionResponse, error) {
	ctx, span := h.tracer.Start(ctx, "fn.evaluate", trace.WithAttributes(attribute.String("faas.name", req.GetImage())))
	defer span.End()
	start := time.Now()
	name, resp, err := h.evaluate(ctx, req)
	if err != nil {
		span.SetStatus(codes.Error, fault.Of(err).String())
	}
	h.report(ctx, req, name, resp, err, time.Since(start))
	if err != nil {
		return nil, err
	}
	return &evaluator.EvaluateFunctionResponse{ResourceList: resp.ResourceList, Log: resp.Log}, nil
}

// evaluate checks the request and has it evaluated. The name is that of the image
// as far as it was resolved.
func (h *Handler) evaluate(ctx context.Context, req *evaluator.EvaluateFunctionRequest) (imagename.Name, evaluation.Response, error) {
	name, err := h.resolve(ctx, req)
	if err != nil {
		return name, evaluation.Response{}, err
	}
	if err := function.CheckInput(req.GetResourceList()); err != nil {
		return name, evaluation.Response{}, err
	}
	resp, err := h.chain.Evaluate(ctx, evaluation.Request{Given: req.GetImage(), Image: name, ResourceList: req.GetResourceList()})
	return name, resp, err
}

// resolve gives the image its canonical name, once for all evaluators.
func (h *Handler) resolve(ctx context.Context, req *evaluator.EvaluateFunctionRequest) (imagename.Name, error) {
	ctx, span := h.tracer.Start(ctx, "fn.resolve")
	defer span.End()
	start := time.Now()
	name, err := h.names.Resolve(ctx, req.GetImage(), req.GetTag())
	h.metrics.phases.Took(ctx, "resolve", time.Since(start))
	span.SetAttributes(attribute.String("container.image.name", name.String()))
	return name, err
}

// report measures and logs one evaluation.
func (h *Handler) report(ctx context.Context, req *evaluator.EvaluateFunctionRequest, name imagename.Name, resp evaluation.Response, err error, took time.Duration) {
	h.metrics.evaluated(ctx, sample{
		image: name, evaluator: resp.Evaluator, err: err, results: resp.Results, took: took,
		requestBytes: len(req.GetResourceList()), responseBytes: len(resp.ResourceList),
	})
	level := levelOf(err)
	if !h.log.Enabled(ctx, level) {
		return
	}
	attrs := []any{
		"image", req.GetImage(), "resolved", name.String(), "evaluator", resp.Evaluator, "took", took,
		"request_bytes", len(req.GetResourceList()), "response_bytes", len(resp.ResourceList),
	}
	if err != nil {
		h.log.Log(ctx, level, "evaluation failed", append(attrs, "class", fault.Of(err).String(), "error", err)...)
		return
	}
	h.log.Log(ctx, level, "evaluated", attrs...)
}

// levelOf says whether the end of an evaluation concerns those who run the system:
// not if it is the function's or the caller's own affair.
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
