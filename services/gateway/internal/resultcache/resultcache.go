// SPDX-License-Identifier: Apache-2.0

// Package resultcache caches the results of pure functions, whose output depends only on their image and their input.
// The key of an entry is a hash of the image's digest and the input. Entries therefore stay valid when a tag moves to
// another image.
//
// Simultaneous evaluations with the same key run once. The first caller evaluates the function with its own context,
// time limit and memory reservation, and the other callers wait for the response. If the first caller leaves early, its
// evaluation is canceled, because the memory for it is no longer reserved. A waiting caller then starts a new
// evaluation. If the evaluation fails for another reason, each waiting caller evaluates separately, because failures
// are neither cached nor shared.
package resultcache

import (
	"context"
	"crypto/sha256"
	"io"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/lru"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
)

// Key is a hash of an image's digest and a function's input. Evaluations with the same key have the same result.
type Key [sha256.Size]byte

// version is a part of each key. Change it when you change the format of keys, so that older keys no longer match.
const version = "function-runner/result/1"

// NewKey returns the key for an image's digest and an input. It hashes version, digest and input, separated by zero
// bytes. The separation is unambiguous, because version and digest contain no zero bytes.
func NewKey(digest string, input []byte) Key {
	h := sha256.New()
	_, _ = io.WriteString(h, version+"\x00"+digest+"\x00") // hashes return no errors
	_, _ = h.Write(input)
	return Key(h.Sum(nil))
}

// Digests resolves images to digests.
type Digests func(ctx context.Context, image imagename.Name) (digest string, err error)

// Config configures a Cache.
type Config struct {
	// Images matches the images whose results are cached.
	Images imagename.Patterns
	// Except matches images whose results are never cached, even if Images matches them. Functions of these images may use
	// the network, so that their output may depend on more than their input.
	Except imagename.Patterns
	// MaxBytes limits the total memory of all cached responses, in bytes.
	MaxBytes int64
	// Digests returns the digest of an image name. If it is nil, results of names without a digest are not cached.
	Digests Digests
	Meters  metric.MeterProvider
}

// Cache caches results of functions. All evaluators that [Cache.Wrap] returns share its entries.
type Cache struct {
	cfg     Config
	lookups metric.Int64Counter

	mu      sync.Mutex
	entries *lru.Cache[Key, evaluation.Response]
	flights map[Key]*flight
}

// Outcomes of a cache lookup, as shown in metrics, in trace spans and in the response header Fn-Cache.
const (
	Hit    = "hit"    // cached response
	Shared = "shared" // response from a simultaneous evaluation
	Miss   = "miss"   // no cached response: the function ran
)

// New returns an empty cache.
func New(cfg Config) *Cache {
	c := &Cache{cfg: cfg, entries: lru.New(cfg.MaxBytes, sizeOf), flights: map[Key]*flight{}}
	meter := cfg.Meters.Meter("gateway")
	c.lookups = telemetry.Must(meter.Int64Counter("fn.result.cache.lookups",
		metric.WithDescription(
			"Lookups in the result cache: hit, shared (a simultaneous evaluation), miss, or unresolved if the "+
				"image's digest is unknown. Labels: outcome.")))
	telemetry.Must(meter.Int64ObservableGauge("fn.result.cache.size", metric.WithUnit("By"),
		metric.WithDescription("Size of the result cache."), telemetry.Observe(c.size)))
	return c
}

// Wrap returns an evaluator that answers from the cache, and calls next if the cache contains no response. If c is nil,
// no results are cached, and Wrap returns next itself.
func (c *Cache) Wrap(next evaluation.Evaluator) evaluation.Evaluator {
	if c == nil {
		return next
	}
	return &evaluator{c, next}
}

func (c *Cache) cachesImage(image imagename.Name) bool {
	return c != nil && c.cfg.Images.Match(image) && !c.cfg.Except.Match(image)
}

// evaluator answers requests from the cache, and calls the evaluator next for all other requests.
type evaluator struct {
	cache *Cache
	next  evaluation.Evaluator
}

// Name implements evaluation.Evaluator.
func (e *evaluator) Name() string { return e.next.Name() }

// Evaluate implements evaluation.Evaluator.
func (e *evaluator) Evaluate(ctx context.Context, req evaluation.Request) (evaluation.Response, error) {
	digest, ok := e.cache.resolveDigest(ctx, req)
	if !ok {
		return e.next.Evaluate(ctx, req)
	}
	resp, err := e.evaluateOnce(ctx, req, digest)
	if err == nil {
		e.cache.countLookup(ctx, resp.Cache)
	}
	return resp, err
}

// resolveDigest returns the digest of a request's image. ok is false if results of the image are not cached, or if its
// digest is unknown. If the image-resolver fails, the request continues without the cache: the next evaluator resolves
// the image too, and returns a better error.
func (c *Cache) resolveDigest(ctx context.Context, req evaluation.Request) (digest string, ok bool) {
	if !c.cachesImage(req.Image) {
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
		c.countLookup(ctx, "unresolved")
		return "", false
	}
	return digest, true
}

func (c *Cache) countLookup(ctx context.Context, outcome string) {
	c.lookups.Add(ctx, 1, metric.WithAttributes(attribute.String("outcome", outcome)))
}
