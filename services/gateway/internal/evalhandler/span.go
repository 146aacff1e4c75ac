// SPDX-License-Identifier: Apache-2.0

package evalhandler

import (
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/function"
)

// describeSpan adds an evaluation's outcome and attributes to its trace span, so that users can search by them.
func (s sample) describeSpan(span trace.Span) {
	if s.err != nil {
		span.SetStatus(codes.Error, fault.Of(s.err).String())
	}
	if !span.IsRecording() {
		return
	}
	// Set all attributes in a single call, so that the span allocates memory for them only once.
	span.SetAttributes(s.spanAttributes()...)
}

// spanAttributes returns the attributes of an evaluation's span. It omits faas.name, the image as the caller wrote it,
// because the span already has this attribute.
func (s sample) spanAttributes() []attribute.KeyValue {
	const most = 11
	leased := s.measured.Leased()
	attrs := append(make([]attribute.KeyValue, 0, most),
		attribute.String("container.image.name", s.image.String()),
		attribute.String("fn.evaluator", s.evaluator),
		attribute.String("fn.code", codeOf(s.err)),
		attribute.String("fn.severity", worstSeverity(s)),
		attribute.Int("fn.attempts", s.measured.Attempts()),
		attribute.Bool("faas.coldstart", leased.ColdStart),
	)
	if s.cache != "" {
		attrs = append(attrs, attribute.String("fn.cache", s.cache))
	}
	if exit, ok := exitCode(s.err); ok {
		attrs = append(attrs, attribute.Int("process.exit.code", exit))
	}
	if leased.Image != "" {
		attrs = append(attrs, attribute.StringSlice("container.image.repo_digests", []string{leased.Image}))
	}
	if leased.Pod != "" {
		attrs = append(attrs,
			attribute.String("k8s.pod.name", leased.Pod), attribute.String("k8s.namespace.name", leased.Namespace))
	}
	return attrs
}

func exitCode(err error) (int, bool) {
	if failure, ok := errors.AsType[*function.Failure](err); ok {
		return failure.ExitCode, failure.Reason != function.NotStarted
	}
	return 0, hasRun(err)
}
