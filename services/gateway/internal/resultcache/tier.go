// SPDX-License-Identifier: Apache-2.0

package resultcache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/krm-function-runner/function-runner/services/gateway/internal/cacheserver"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
)

const (
	// getTimeout bounds what the server delays an evaluation, and setTimeout what it delays a writer. Either may
	// have to connect first.
	getTimeout = 200 * time.Millisecond
	setTimeout = 5 * time.Second
)

// Server keeps values for all gateways. It is not trusted.
type Server interface {
	// Get returns the value of a name, which the caller may change; nil if there is none.
	Get(ctx context.Context, name string) ([]byte, error)
	// Set sets the value of a name until ttl is over.
	Set(ctx context.Context, name string, value []byte, ttl time.Duration) error
}

// TierConfig is what a Tier works with.
type TierConfig struct {
	Server Server
	// Key is shared by all gateways. It has [SealKeyBytes].
	Key []byte
	// TTL is how long the server keeps a value.
	TTL time.Duration
	// MaxResponseBytes bounds the responses that are written.
	MaxResponseBytes int
	Log              *slog.Logger
	Meters           metric.MeterProvider
}

// Tier is the second tier of a cache: entries at a server that gateways share. Whatever goes wrong with the server
// is a miss. A nil Tier has no entries.
type Tier struct {
	cfg      TierConfig
	sealer   sealer
	queue    *writeQueue
	requests metric.Int64Counter

	// A server may be too full to be written to, and still answer.
	reads, writes breaker
}

// The outcomes of requests to the server that are not hits and misses.
const (
	written  = "written"
	failed   = "error"
	skipped  = "skipped"  // not sent, since requests before it failed, or all connections are in use
	unopened = "unopened" // not what a gateway with the same key has written
	dropped  = "dropped"  // not queued: too many results wait to be written, or this one is too large
)

// NewTier returns the entries at a server. [Tier.Run] writes them.
func NewTier(cfg TierConfig) (*Tier, error) {
	sealer, err := newSealer(cfg.Key)
	if err != nil {
		return nil, err
	}
	t := &Tier{cfg: cfg, sealer: sealer, queue: newWriteQueue(int64(cfg.MaxResponseBytes))}
	meter := cfg.Meters.Meter("gateway")
	var errs [2]error
	t.requests, errs[0] = meter.Int64Counter("fn.result.cache.server.requests",
		metric.WithDescription("Requests to the server of the result cache, by operation and outcome."))
	_, errs[1] = meter.Int64ObservableGauge("fn.result.cache.server.queued", metric.WithUnit("By"),
		metric.WithDescription("Bytes of results that wait to be written to the server of the result cache."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(t.queue.size())
			return nil
		}))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("set up the metrics of the result cache's server: %w", err)
	}
	return t, nil
}

// get returns the response of an entry.
func (t *Tier) get(ctx context.Context, key Key) (resp evaluation.Response, ok bool) {
	if t == nil {
		return resp, false
	}
	if !t.reads.permits() {
		t.count(ctx, "get", skipped)
		return resp, false
	}
	resp, outcome := t.fetch(ctx, key)
	t.count(ctx, "get", outcome)
	return resp, outcome == Hit
}

// fetch asks the server for an entry, and returns how that ended.
func (t *Tier) fetch(ctx context.Context, key Key) (resp evaluation.Response, outcome string) {
	within, cancel := context.WithTimeout(ctx, getTimeout)
	defer cancel()
	value, err := t.cfg.Server.Get(within, t.sealer.name(key))
	if err != nil {
		if ctx.Err() != nil || errors.Is(err, cacheserver.ErrBusy) { // not known to be the server's fault
			return resp, skipped
		}
		t.failed(ctx, &t.reads, "read", err)
		return resp, failed
	}
	t.succeeded(ctx, &t.reads, "read")
	if value == nil {
		return resp, Miss
	}
	if resp, err = t.sealer.open(key, value); err != nil {
		return resp, unopened
	}
	return resp, Hit
}

// put queues an entry to be written.
func (t *Tier) put(ctx context.Context, key Key, resp evaluation.Response) {
	if t == nil {
		return
	}
	if !t.queue.add(entry{key, resp}) {
		t.count(ctx, "set", dropped)
	}
}

// Run writes entries until ctx ends. What is queued then is lost.
func (t *Tier) Run(ctx context.Context) error {
	for {
		next, ok := t.queue.next(ctx)
		if !ok {
			return nil
		}
		t.count(ctx, "set", t.write(ctx, next))
		t.queue.done(next)
	}
}

// write writes an entry, and returns how that ended.
func (t *Tier) write(ctx context.Context, e entry) (outcome string) {
	if !t.writes.permits() {
		return skipped
	}
	within, cancel := context.WithTimeout(ctx, setTimeout)
	defer cancel()
	value, err := t.sealer.seal(e.key, e.response)
	if err != nil || len(value) > MaxSealedBytes(t.cfg.MaxResponseBytes) {
		return dropped
	}
	err = t.cfg.Server.Set(within, t.sealer.name(e.key), value, t.cfg.TTL)
	switch {
	case err == nil:
		t.succeeded(ctx, &t.writes, "write")
		return written
	case ctx.Err() != nil || errors.Is(err, cacheserver.ErrBusy):
		return skipped
	default:
		t.failed(ctx, &t.writes, "write", err)
		return failed
	}
}

// failed records that the server failed.
func (t *Tier) failed(ctx context.Context, b *breaker, operation string, err error) {
	if b.failed() {
		t.cfg.Log.WarnContext(ctx, "result cache server failed; evaluating without it, and trying it again",
			"operation", operation, "interval", breakerPause, "error", err)
	}
}

// succeeded records that the server answered.
func (t *Tier) succeeded(ctx context.Context, b *breaker, operation string) {
	if b.succeeded() {
		t.cfg.Log.InfoContext(ctx, "result cache server answers again", "operation", operation)
	}
}

// count counts a request.
func (t *Tier) count(ctx context.Context, operation, outcome string) {
	t.requests.Add(ctx, 1, metric.WithAttributes(
		attribute.String("operation", operation), attribute.String("outcome", outcome)))
}
