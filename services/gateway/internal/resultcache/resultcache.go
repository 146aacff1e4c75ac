// SPDX-License-Identifier: Apache-2.0

// Package resultcache remembers what functions returned, for functions whose output depends on nothing but
// their image and their input. The digest of the image and the bytes of the input are the key: an entry is never
// outdated, and a tag that moves leads to other entries.
//
// Simultaneous evaluations with the same key are one evaluation. One caller, the leader, evaluates with its own
// context, limits and reservations, and the others wait for it. They get its response if it succeeds. If the leader
// leaves before that, one of the others takes over; if its evaluation fails, each evaluates for itself, as without
// a cache: failures are neither remembered nor shared.
package resultcache

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
)

// Key identifies an evaluation whose outcome is known beforehand.
type Key [sha256.Size]byte

// version is part of each key. It changes with what a key means.
const version = "function-runner/result/1"

// NewKey returns the key of a function's input. Neither version nor digest has a byte of zero.
func NewKey(digest string, input []byte) Key {
	h := sha256.New()
	_, _ = io.WriteString(h, version+"\x00"+digest+"\x00") // hashes do not fail
	_, _ = h.Write(input)
	return Key(h.Sum(nil))
}

// Digests resolves images.
type Digests func(ctx context.Context, image imagename.Name) (digest string, err error)

// Config is what a Cache works with.
type Config struct {
	// Images are those whose results are remembered.
	Images imagename.Patterns
	// Except are images among them whose results are not: they may use the network, so their input does not
	// decide their output.
	Except imagename.Patterns
	// MaxBytes bounds the entries.
	MaxBytes int64
	// Digests resolves images that have no digest in their name; nil if nothing does.
	Digests Digests
	Meters  metric.MeterProvider
}

// Cache remembers results. It is shared by all evaluators that it wraps.
type Cache struct {
	cfg     Config
	entries *entries
	lookups metric.Int64Counter

	mu      sync.Mutex
	flights map[Key]*flight
}

// The outcomes of a lookup, in metrics, spans and response headers.
const (
	Hit    = "hit"    // an entry
	Shared = "shared" // the response of a simultaneous evaluation
	Miss   = "miss"   // a function was evaluated
)

// New returns an empty cache.
func New(cfg Config) (*Cache, error) {
	c := &Cache{cfg: cfg, entries: newEntries(cfg.MaxBytes), flights: map[Key]*flight{}}
	meter := cfg.Meters.Meter("gateway")
	var errs [2]error
	c.lookups, errs[0] = meter.Int64Counter("fn.result.cache.lookups",
		metric.WithDescription("Evaluations of functions whose results are remembered, by how they were answered."))
	_, errs[1] = meter.Int64ObservableGauge("fn.result.cache.size", metric.WithUnit("By"),
		metric.WithDescription("Bytes of remembered results."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(c.entries.size())
			return nil
		}))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("set up the metrics of the result cache: %w", err)
	}
	return c, nil
}

// Wrap returns next with the cache before it. A nil cache changes nothing.
func (c *Cache) Wrap(next evaluation.Evaluator) evaluation.Evaluator {
	if c == nil {
		return next
	}
	return &evaluator{c, next}
}

// remembers reports whether the cache stores results of an image.
func (c *Cache) remembers(image imagename.Name) bool {
	return c != nil && c.cfg.Images.Match(image) && !c.cfg.Except.Match(image)
}

// evaluator evaluates what the cache does not know.
type evaluator struct {
	cache *Cache
	next  evaluation.Evaluator
}

// Name implements evaluation.Evaluator.
func (e *evaluator) Name() string { return e.next.Name() }

// Evaluate implements evaluation.Evaluator.
func (e *evaluator) Evaluate(ctx context.Context, req evaluation.Request) (evaluation.Response, error) {
	digest, ok := e.cache.digest(ctx, req)
	if !ok {
		return e.next.Evaluate(ctx, req)
	}
	resp, err := e.evaluate(ctx, req, digest)
	if err == nil {
		e.cache.count(ctx, resp.Cache)
	}
	return resp, err
}

// digest returns the digest of a request's image, if its results are remembered. A digest that cannot be
// resolved makes no evaluation fail: the evaluator knows better than the cache what that means.
func (c *Cache) digest(ctx context.Context, req evaluation.Request) (digest string, ok bool) {
	if !c.remembers(req.Image) {
		return "", false
	}
	if digest := req.Image.Digest; digest != "" {
		return digest, true
	}
	if c.cfg.Digests == nil {
		return "", false
	}
	ctx, cancel := req.Limit.Context(ctx)
	defer cancel()
	start := time.Now()
	digest, err := c.cfg.Digests(ctx, req.Image)
	req.Measured.Resolving(time.Since(start))
	if err != nil || digest == "" {
		c.count(ctx, "unresolved")
		return "", false
	}
	return digest, true
}

// count counts a request for remembered results.
func (c *Cache) count(ctx context.Context, outcome string) {
	c.lookups.Add(ctx, 1, metric.WithAttributes(attribute.String("outcome", outcome)))
}
