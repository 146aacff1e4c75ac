// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"errors"
	"log/slog"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/krm-function-runner/function-runner/libs/cache"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

// metrics counts how requests are answered.
type metrics struct {
	log     *slog.Logger
	answers metric.Int64Counter
	moves   metric.Int64Counter
	// sources are the attributes of answers, made once.
	sources map[cache.Source]metric.MeasurementOption
}

func newMetrics(tel *telemetry.Telemetry, bytes func() int64) (*metrics, error) {
	meter := tel.Meters.Meter("image-resolver")
	m := &metrics{log: tel.Log, sources: make(map[cache.Source]metric.MeasurementOption)}
	for _, s := range []cache.Source{cache.Hit, cache.Refresh, cache.Failure, cache.Miss} {
		m.sources[s] = metric.WithAttributeSet(attribute.NewSet(attribute.String("source", string(s))))
	}
	var errs [3]error
	m.answers, errs[0] = meter.Int64Counter("fn.resolver.answers",
		metric.WithDescription("Answers about images and tags, by how they were found: hit, renewal, failure or miss."))
	m.moves, errs[1] = meter.Int64Counter("fn.resolver.tag.moves",
		metric.WithDescription("Tags that were found to point at another image than before."))
	_, errs[2] = meter.Int64ObservableGauge("fn.resolver.cache.size", metric.WithUnit("By"),
		metric.WithDescription("Bytes that the cache is taken to need."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error { o.Observe(bytes()); return nil }))
	return m, errors.Join(errs[:]...)
}

// answered counts an answer.
func (m *metrics) answered(ctx context.Context, source cache.Source) {
	m.answers.Add(ctx, 1, m.sources[source])
}

// moved counts and logs a tag that points elsewhere now.
func (m *metrics) moved(ctx context.Context, repository, tag, from, to string) {
	m.moves.Add(ctx, 1)
	m.log.InfoContext(ctx, "tag has moved", "repository", repository, "tag", tag, "from", from, "to", to)
}
