// SPDX-License-Identifier: Apache-2.0

// Package evalhandler handles the requests of Porch and other callers: it checks requests, resolves image names,
// evaluates functions, and records metrics, traces and logs.
package evalhandler

import (
	"context"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/krm-function-runner/function-runner/libs/evalserve"
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/retry"
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalhistory"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalmetrics"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
)

// Namer resolves image names.
type Namer interface {
	Resolve(ctx context.Context, image, constraint string) (imagename.Name, error)
}

// Config configures a Handler.
type Config struct {
	Names Namer
	// Chain evaluates requests.
	Chain evaluation.Chain
	// MaxMessageBytes limits each request, in bytes. MemoryBudgetBytes limits the memory of all current requests together,
	// including the outputs of their functions.
	MaxMessageBytes, MemoryBudgetBytes int64
	// MemoryBudgetSetting is the name of the setting for MemoryBudgetBytes. Errors name it, so that users can raise it.
	MemoryBudgetSetting string
	// LogFunctionOutput is true if stderr and results of failed functions are logged. They may include secrets.
	LogFunctionOutput bool
	// MaxLogRate is the maximum number of log lines per second, separately for successes and for failures. Evaluations
	// beyond this rate are counted instead of logged, and the next line contains their number.
	MaxLogRate float64
	// MaxEvaluationTime limits the time of an evaluation, including all waits. The time starts when the request has been
	// read. Zero means no limit.
	MaxEvaluationTime time.Duration
	// MaxTimeSetting is the name of the setting for MaxEvaluationTime. Errors name it, so that users can raise it.
	MaxTimeSetting string
	Telemetry      *telemetry.Telemetry
	// History stores recent evaluations for the status page. It is required.
	History *evalhistory.History
}

// Handler implements Porch's FunctionEvaluator service.
type Handler struct {
	names      Namer
	chain      evaluation.Chain
	lines      *lines
	tracer     trace.Tracer
	metrics    *metrics
	history    *evalhistory.History
	maxMessage int64
	maxTime    time.Duration
	setting    string // name of the setting that configures maxTime
	budget     *evalserve.Budget
}

// New returns a handler. Callers must serve it through [Handler.Serve], which limits the memory of requests.
func New(cfg Config) *Handler {
	tel := cfg.Telemetry
	budget := evalserve.NewBudget(
		cfg.MemoryBudgetBytes, serve.DefaultWindows, "the gateway's setting "+cfg.MemoryBudgetSetting)
	return &Handler{
		names: cfg.Names, chain: cfg.Chain, history: cfg.History,
		tracer: tel.Tracers.Tracer("gateway"),
		lines:  newLines(tel.Log, cfg.LogFunctionOutput, cfg.MaxLogRate), maxMessage: cfg.MaxMessageBytes,
		maxTime: cfg.MaxEvaluationTime, setting: "the gateway's setting " + cfg.MaxTimeSetting,
		budget: budget, metrics: newMetrics(tel.Meters, budget),
	}
}

// EvaluateFunction implements Porch's FunctionEvaluator service.
func (h *Handler) EvaluateFunction(
	ctx context.Context, req *evaluator.EvaluateFunctionRequest,
) (*evaluator.EvaluateFunctionResponse, error) {
	ctx, span := h.tracer.Start(ctx, "fn.evaluate", trace.WithAttributes(attribute.String("faas.name", req.GetImage())))
	defer span.End()
	start := time.Now()
	s := sample{
		given: req.GetImage(), requestBytes: len(req.GetResourceList()),
		measured: h.metrics.active.Begin(req.GetImage()), err: errPanic,
	}
	s.inputSHA256 = h.lines.hashList(ctx, req.GetResourceList())
	defer func() { // runs also after a panic, from which a caller of EvaluateFunction recovers
		s.measured.End()
		s.took = time.Since(start)
		h.reportEvaluation(ctx, s)
	}()
	resp, err := h.evaluate(ctx, req, &s)
	s.measured.End()
	s.outputSHA256 = h.lines.hashList(ctx, resp.ResourceList)
	req.ResourceList = nil // frees the memory of the input: from here on, only the answer uses the memory budget
	s.err = h.reserveAnswer(ctx, resp, err)
	s.addResponse(resp)
	if s.err != nil {
		return nil, s.err
	}
	showCache(ctx, resp.Cache)
	return &evaluator.EvaluateFunctionResponse{ResourceList: resp.ResourceList, Log: resp.Log}, nil
}

// errPanic is the error that metrics and log show for an evaluation that panicked.
var errPanic = fault.New(fault.Internal, "the gateway failed; its log has the cause")

// CacheHeader is the response header that shows callers how the result cache was used: hit, shared or miss.
const CacheHeader = "Fn-Cache"

// showCache sets the response header [CacheHeader]. It does nothing if outcome is empty because no result cache was
// used.
func showCache(ctx context.Context, outcome string) {
	if call, ok := connect.CallInfoForHandlerContext(ctx); ok && outcome != "" {
		call.ResponseHeader().Set(CacheHeader, outcome)
	}
}

// droppedError means that the gateway dropped the answer of a function that succeeded. Either the client has left, or
// the client already uses all memory that it may use. A client's requests and unread answers use this memory.
type droppedError struct{ error }

// Unwrap returns the wrapped error, which the caller gets.
func (e *droppedError) Unwrap() error { return e.error }

// reserveAnswer waits until the memory budget has room for the answer. It does not wait if the answer is no larger than
// its request. If err is not nil, there is no answer, and reserveAnswer returns err. If the gateway must drop the
// answer, reserveAnswer returns a [*droppedError].
func (h *Handler) reserveAnswer(ctx context.Context, resp evaluation.Response, err error) error {
	reservation := evalserve.Of(ctx)
	if err != nil {
		reservation.Fail()
		return err
	}
	if err := reservation.Answer(ctx, int64(len(resp.ResourceList)+len(resp.Log))); err != nil {
		return &droppedError{err}
	}
	return nil
}

// evaluate checks a request, resolves its image name, runs its function and records the progress in s. It stops shortly
// before the caller's deadline. The caller then still receives an error that explains the delay.
func (h *Handler) evaluate(
	ctx context.Context, req *evaluator.EvaluateFunctionRequest, s *sample,
) (evaluation.Response, error) {
	ctx, cancel := retry.EarlyDeadline(ctx)
	defer cancel()
	limit := function.NewTimeLimit(h.maxTime, h.setting)
	var err error
	if s.image, err = h.resolveAndClaim(ctx, limit, req, s.measured); err != nil {
		return evaluation.Response{}, err
	}
	request := evaluation.Request{
		Given: s.given, Image: s.image, ResourceList: req.GetResourceList(), Caller: rpcserve.Caller(ctx), Limit: limit,
		Measured: s.measured,
	}
	if err := request.CheckInput(ctx); err != nil {
		return evaluation.Response{}, err
	}
	resp, err := h.chain.Evaluate(ctx, request)
	return resp, function.Resolved(err, s.image.String())
}

// resolveAndClaim resolves the image's name and waits for memory in the function's share of the memory budget. Callers
// may write a function's name in several ways, and each spelling has a share of its own. Therefore resolveAndClaim
// first waits in the share of the requested name, and then in the share of the canonical name. The argument limit
// limits the total time.
func (h *Handler) resolveAndClaim(
	ctx context.Context, limit function.TimeLimit,
	req *evaluator.EvaluateFunctionRequest, measured *evalmetrics.Evaluation,
) (imagename.Name, error) {
	ctx, cancel := limit.Context(ctx)
	defer cancel()
	if err := h.claimMemory(ctx, req, strings.TrimSpace(req.GetImage()+" "+req.GetTag())); err != nil {
		return imagename.Name{}, err
	}
	measured.Enter("resolve")
	name, took, err := h.resolveImage(ctx, limit, req)
	measured.Resolving(took)
	if err == nil {
		measured.Names(name.String())
		err = h.claimMemory(ctx, req, name.Key())
	}
	return name, err
}

// claimMemory waits until the function has room in its share of the memory budget. name identifies the function.
func (h *Handler) claimMemory(ctx context.Context, req *evaluator.EvaluateFunctionRequest, name string) error {
	start := time.Now()
	err := evalserve.Of(ctx).Claim(ctx, name)
	if err != nil && ctx.Err() != nil {
		took := time.Since(start)
		return function.Interrupted(function.ContextErr(ctx), req.GetImage(), took,
			"waiting for other requests of the function")
	}
	return err
}

// resolveImage returns the canonical name of the request's image. The name has the highest tag that satisfies the
// request's version constraint. The argument limit only explains a timeout in error messages. It does not set a
// deadline, so callers must set the deadline of ctx.
func (h *Handler) resolveImage(
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
		err = function.Interrupted(function.ContextErr(ctx), req.GetImage(), took, "looking up the image's tag")
	case fault.Of(err) == fault.DeadlineExceeded && retry.NearDeadline(ctx):
		err = function.Interrupted(limit.Explain(ctx, err), req.GetImage(), took, "looking up the image's tag")
	}
	return name, took, err
}

// reportEvaluation records a finished evaluation in metrics, trace, log and history.
func (h *Handler) reportEvaluation(ctx context.Context, s sample) {
	s.measured.Took(ctx, "resolve", s.measured.Resolved())
	label := h.metrics.countEvaluation(ctx, s)
	s.party = partyOf(s.err, label)
	s.describeSpan(trace.SpanFromContext(ctx))
	h.lines.logEvaluation(ctx, s)
	h.history.Add(label, s.historyRecord(ctx))
}

// Serve returns the HTTP handler of the FunctionEvaluator service, and the URL path to serve it on.
func (h *Handler) Serve(options ...connect.HandlerOption) (path string, handler http.Handler) {
	return evalserve.NewHandler(evalserve.Config{
		Service: h, Budget: h.budget, MaxMessageBytes: h.maxMessage, Rejected: h.reportRejection,
	}, options...)
}

// reportRejection records a request that was rejected before it was read completely, such as for lack of memory.
func (h *Handler) reportRejection(ctx context.Context, err error) {
	h.metrics.countRejection(ctx, err)
	h.lines.logRejection(ctx, err)
	h.history.Add("", rejectionRecord(err))
}

// QueuedForMemory returns the number of requests and answers that wait because the memory budget is used up. The status
// page shows this number as a problem.
func (h *Handler) QueuedForMemory() int64 { return h.budget.Queued() }

// Active returns the numbers of running evaluations in each phase, and the reasons of their waits.
func (h *Handler) Active() *evalmetrics.Active { return h.metrics.active }
