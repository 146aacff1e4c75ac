// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
)

// otlp is an output of log records of OpenTelemetry.
type otlp struct {
	exporter sdklog.Exporter
	provider *sdklog.LoggerProvider
	records  *records
}

// records is a processor that keeps the records that it gets.
type records struct{ kept []sdklog.Record }

// OnEmit implements the interface of processors.
func (r *records) OnEmit(_ context.Context, record *sdklog.Record) error {
	r.kept = append(r.kept, record.Clone())
	return nil
}

// Enabled implements the interface of processors.
func (r *records) Enabled(context.Context, sdklog.EnabledParameters) bool { return true }

func (r *records) Shutdown(context.Context) error   { return nil }
func (r *records) ForceFlush(context.Context) error { return nil }

// OpenOTLP returns an output that exports log records as OpenTelemetry's variables say.
func OpenOTLP(ctx context.Context) (Output, error) {
	exporter, err := autoexport.NewLogExporter(ctx)
	if err != nil {
		return nil, fmt.Errorf("set up the export of the audit log: %w: check the OTEL_ variables", err)
	}
	if autoexport.IsNoneLogExporter(exporter) {
		return nil, errors.New("the audit log is exported, and OTEL_LOGS_EXPORTER is none: unset one of them")
	}
	return newOTLP(exporter), nil
}

func newOTLP(exporter sdklog.Exporter) *otlp {
	kept := new(records)
	return &otlp{exporter: exporter, records: kept, provider: sdklog.NewLoggerProvider(sdklog.WithProcessor(kept))}
}

// Write implements Output.
func (o *otlp) Write(ctx context.Context, events []Event) error {
	o.records.kept = o.records.kept[:0]
	logger := o.provider.Logger("audit")
	for i := range events {
		logger.Emit(ctx, record(&events[i]))
	}
	return o.exporter.Export(ctx, o.records.kept)
}

// record returns an event as a log record, whose attributes are the fields of the lines.
func record(e *Event) log.Record {
	var r log.Record
	r.SetTimestamp(e.Time)
	r.SetSeverity(log.SeverityInfo)
	r.SetEventName("evaluation")
	r.AddAttributes(
		log.String("trace_id", e.TraceID),
		log.String("caller.id", e.Caller.ID), log.String("caller.kind", e.Caller.Kind),
		slice("caller.groups", e.Caller.Groups), log.String("caller.address", e.Caller.Address),
		log.String("image.given", e.Image.Given), log.String("image.name", e.Image.Name),
		log.String("image.digest", e.Image.Digest), slice("image.signers", e.Image.Signers),
		log.String("evaluator", e.Evaluator),
		log.String("verdict", e.Verdict), log.String("rule", e.Rule),
		log.Int("input.bytes", e.Input.Bytes), log.String("input.sha256", e.Input.SHA256),
		log.Float64("duration_seconds", e.Seconds), log.String("code", e.Code), log.String("reason", e.Reason),
	)
	if e.Output != nil {
		r.AddAttributes(log.Int("output.bytes", e.Output.Bytes), log.String("output.sha256", e.Output.SHA256))
	}
	return r
}

// slice returns an attribute with texts.
func slice(key string, texts []string) log.KeyValue {
	values := make([]log.Value, 0, len(texts))
	for _, text := range texts {
		values = append(values, log.StringValue(text))
	}
	return log.Slice(key, values...)
}

// Close implements Output.
func (o *otlp) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return o.exporter.Shutdown(ctx)
}
