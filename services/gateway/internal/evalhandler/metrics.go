// SPDX-License-Identifier: Apache-2.0

package evalhandler

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/krm-function-runner/function-runner/libs/evalserve"
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/resourcelist"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalhistory"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalmetrics"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
)

// metrics are the gateway's metrics of evaluations. Their names follow OpenTelemetry. Prometheus shows them in another
// form, such as fn_evaluations_total for fn.evaluations.
type metrics struct {
	evaluations   metric.Int64Counter
	duration      metric.Float64Histogram
	rejections    metric.Int64Counter
	requestBytes  metric.Int64Histogram
	responseBytes metric.Int64Histogram
	active        *evalmetrics.Active
	images        imagename.Labels
}

// sizes are the histogram buckets for the sizes of requests and responses, in bytes.
var sizes = metric.WithExplicitBucketBoundaries(telemetry.Bytes...)

// newMetrics registers the metrics of evaluations and of the memory budget, and returns them.
func newMetrics(provider metric.MeterProvider, budget *evalserve.Budget) *metrics {
	meter := provider.Meter("gateway")
	telemetry.Must(meter.Int64ObservableGauge("fn.requests.in.hand", metric.WithUnit("By"),
		metric.WithDescription("Bytes reserved from the memory budget, for requests and outputs."),
		telemetry.Observe(budget.Reserved)))
	telemetry.Must(meter.Int64ObservableGauge("fn.requests.queued",
		metric.WithDescription("Requests and answers that wait for the memory budget, or for their function's share of it."),
		telemetry.Observe(budget.Queued)))
	return &metrics{
		evaluations: telemetry.Must(meter.Int64Counter("fn.evaluations",
			metric.WithDescription("Evaluations that ended. Labels: image, executor, code, severity."))),
		duration: telemetry.Must(meter.Float64Histogram("fn.evaluation.duration", metric.WithUnit("s"), evalmetrics.Seconds,
			metric.WithDescription("Time from request to response. Labels: image, executor, code, severity."))),
		rejections: telemetry.Must(meter.Int64Counter("fn.rejections",
			metric.WithDescription("Requests that were rejected before any function ran. Labels: reason."))),
		requestBytes: telemetry.Must(meter.Int64Histogram("fn.request", metric.WithUnit("By"), sizes,
			metric.WithDescription("Size of resource lists received."))),
		responseBytes: telemetry.Must(meter.Int64Histogram("fn.response", metric.WithUnit("By"), sizes,
			metric.WithDescription("Size of resource lists returned."))),
		active: evalmetrics.NewActive(provider),
	}
}

// sample contains the data that metrics, trace, log and history record about an evaluation.
type sample struct {
	given                       string // image as the caller wrote it
	image                       imagename.Name
	evaluator                   string
	err                         error
	results                     []resourcelist.Result
	took                        time.Duration
	requestBytes, responseBytes int
	measured                    *evalmetrics.Evaluation
	resolved                    string // digest of the executed image, or empty
	cache                       string // outcome of the result cache, or empty
	inputSHA256, outputSHA256   string // hashes of the lists; empty if the log does not contain them
	party                       string // party that caused a failure: function, caller or system
}

// addResponse copies the recorded parts of an evaluator's response, such as the image's digest, to s.
func (s *sample) addResponse(resp evaluation.Response) {
	s.evaluator = resp.Evaluator
	s.results = resp.Results
	s.responseBytes = len(resp.ResourceList)
	s.cache = resp.Cache
	s.resolved = resp.Digest
}

func (m *metrics) countEvaluation(ctx context.Context, s sample) (image string) {
	if _, queueFull := fault.RetryAfter(s.err); (queueFull && !hasRun(s.err)) || s.evaluator == "" {
		m.countRejection(ctx, s.err)
	}
	image = m.imageLabel(s)
	labels := metric.WithAttributeSet(attribute.NewSet(
		attribute.String("image", image),
		attribute.String("executor", s.evaluator),
		attribute.String("code", codeOf(s.err)),
		attribute.String("severity", worstSeverity(s)),
	))
	m.evaluations.Add(ctx, 1, labels)
	m.duration.Record(ctx, s.took.Seconds(), labels)
	m.requestBytes.Record(ctx, int64(s.requestBytes))
	if s.err == nil {
		m.responseBytes.Record(ctx, int64(s.responseBytes))
	}
	return image
}

// countRejection counts a request that was rejected before its function ran, by the class of its error.
func (m *metrics) countRejection(ctx context.Context, err error) {
	m.rejections.Add(ctx, 1, metric.WithAttributes(attribute.String("reason", fault.Of(err).String())))
}

// imageLabel returns the value of the metric label image. An image gets its own label only after its function has
// run. Otherwise callers could use up the limited number of labels with invented image names.
func (m *metrics) imageLabel(s sample) string {
	if s.evaluator == "" {
		return imagename.OtherImages
	}
	if hasRun(s.err) {
		return m.images.Earn(s.image)
	}
	return m.images.Label(s.image)
}

// hasRun reports whether an evaluation has started its function. The argument err is the evaluation's error, or nil.
// After a droppedError, hasRun returns true, because the function succeeded before the gateway dropped its answer.
func hasRun(err error) bool {
	if _, dropped := errors.AsType[*droppedError](err); dropped || err == nil {
		return true
	}
	failure, ok := errors.AsType[*function.Failure](err)
	return ok && failure.Reason != function.NotStarted
}

// codeOf returns the code that metrics, log and history show for an evaluation: "ok", or the class of its error.
func codeOf(err error) string {
	if err == nil {
		return evalhistory.OK
	}
	return fault.Of(err).String()
}

// worstSeverity returns the most severe level among a function's results, such as "error" or "warning". A failed
// function may have results too.
func worstSeverity(s sample) string {
	if failure, ok := errors.AsType[*function.Failure](s.err); ok {
		return resourcelist.Worst(failure.Results)
	}
	return resourcelist.Worst(s.results)
}
