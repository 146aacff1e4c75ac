// SPDX-License-Identifier: Apache-2.0

// Package resolver resolves image references. It answers from its cache while the cached answer is valid, and queries
// the registry otherwise.
package resolver

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/krm-function-runner/function-runner/libs/cache"
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/tagconstraint"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/oci"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/registry"
)

// Config configures a Resolver. All fields but DefaultPrefix are required.
type Config struct {
	// DefaultPrefix is the prefix of image names without a slash.
	DefaultPrefix string
	// Platforms are the platforms to choose from if a request names no platform.
	Platforms oci.Platforms
	Registry  *registry.Client
	// MaxBytes bounds the cache.
	MaxBytes int64
	// Tags is the lifetime of tags and lists of tags. Digests are immutable.
	Tags      cache.Lifetime
	Telemetry *telemetry.Telemetry
}

const (
	// fetchTimeout bounds a fetch, with all its retries. It is shorter than the usual timeout of callers, so that they get
	// the error.
	fetchTimeout = 20 * time.Second
	// maxFetches is the maximum number of concurrent fetches. Most fetches wait in the queue of their registry.
	maxFetches = 10_000
	// staleWait is the maximum wait for a registry if there is a stale answer.
	staleWait = 2 * time.Second
	// keepFor is the time after a request for which a tag is refreshed before its answer expires, so that a function
	// that is called now and then does not wait for its registry in each cold start.
	keepFor = time.Hour
	// maxKept is the maximum number of tags and lists of tags that are refreshed in this way. Each costs a small
	// request every few minutes.
	maxKept = 1000
)

// Request is the request for an image.
type Request struct {
	Image string
	// Constraint, if not empty, replaces the image's tag and digest.
	Constraint string
	// Platform is the platform to choose. Empty fields get the configured values.
	Platform oci.Platform
	// Renew requests the registry's current answer instead of a cached answer.
	Renew bool
}

// Result is a resolved image.
type Result struct {
	// Reference is the canonical name with tag and without digest.
	Reference string
	Image     *oci.Image
	// Age is the time since the registry sent the answer.
	Age time.Duration
}

// Resolver answers requests.
type Resolver struct {
	cfg   Config
	cache *cache.Cache[key, answer]

	log     *slog.Logger
	answers metric.Int64Counter
	moves   metric.Int64Counter
}

// New returns a resolver. Callers must run [Resolver.Run].
func New(cfg Config) (*Resolver, error) {
	r := &Resolver{cfg: cfg, log: cfg.Telemetry.Log}
	r.cache = cache.New(cache.Config[key, answer]{
		Fetch: r.fetch, Lifetime: r.lifetimeOf, MaxBytes: cfg.MaxBytes, Size: sizeOf, MaxFetches: maxFetches,
		FetchTimeout: fetchTimeout, StaleWait: staleWait, KeepFor: keepFor, MaxKept: maxKept,
	})
	meter := cfg.Telemetry.Meters.Meter("image-resolver")
	var errs [3]error
	r.answers, errs[0] = meter.Int64Counter("fn.resolver.answers",
		metric.WithDescription(
			"Answers about images and tags by their source: hit, renewal, failure or miss. Labels: source."))
	r.moves, errs[1] = meter.Int64Counter("fn.resolver.tag.moves",
		metric.WithDescription("Tags that were found to point at another image than before."))
	_, errs[2] = meter.Int64ObservableGauge("fn.resolver.cache.size", metric.WithUnit("By"),
		metric.WithDescription("Estimated size of the cache."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(r.cache.Bytes())
			return nil
		}))
	return r, errors.Join(errs[:]...)
}

// Run refreshes tags in use until ctx is done, and then stops all fetches.
func (r *Resolver) Run(ctx context.Context) error { return r.cache.Run(ctx) }

// ForgetFailures removes cached failures, because credentials or certificates have changed.
func (r *Resolver) ForgetFailures() { r.cache.ForgetFailures() }

// Resolve resolves an image. The classes of its errors are fault.Invalid, Precondition, Unavailable, Exhausted, and the
// classes of ctx's errors.
func (r *Resolver) Resolve(ctx context.Context, req Request) (Result, error) {
	name, err := r.selectImage(req, func(repository string) ([]string, error) {
		return r.allTags(ctx, repository, req.Renew)
	})
	if err != nil {
		return Result{}, err
	}
	found, err := r.queryCache(ctx, r.imageKey(name, req.Platform), req.Renew && name.Digest == "")
	if err != nil {
		return Result{}, annotateError(err, "resolve", name.String())
	}
	return newResult(name, found), nil
}

// errNotCached is the error for tags that are not in the cache.
var errNotCached = errors.New("not cached")

// Cached returns the answer of Resolve if it is available without waiting. Entries that are due for a refresh are
// refreshed in the background.
func (r *Resolver) Cached(ctx context.Context, req Request) (Result, bool) {
	name, err := r.selectImage(req, func(repository string) ([]string, error) {
		found, ok := r.queryCached(ctx, key{repository: repository})
		if !ok {
			return nil, errNotCached
		}
		return found.Value.tags, nil
	})
	if err != nil {
		return Result{}, false
	}
	found, ok := r.queryCached(ctx, r.imageKey(name, req.Platform))
	if !ok {
		return Result{}, false
	}
	return newResult(name, found), true
}

func newResult(name imagename.Name, found cache.Answer[answer]) Result {
	reference := name.Repository
	if name.Tag != "" {
		reference += ":" + name.Tag
	}
	return Result{Reference: reference, Image: found.Value.image, Age: found.Age}
}

// selectImage returns the image that a request names, with the tag that its constraint selects from list.
func (r *Resolver) selectImage(req Request, list func(repository string) ([]string, error)) (imagename.Name, error) {
	name, err := imagename.Parse(req.Image, r.cfg.DefaultPrefix)
	if err != nil {
		return imagename.Name{}, err
	}
	constraint, err := tagconstraint.Parse(req.Constraint)
	if err != nil || constraint.IsZero() {
		return name, err
	}
	if tag, ok := constraint.Exact(); ok {
		return name.WithTag(tag)
	}
	tags, err := list(name.Repository)
	if err != nil {
		return imagename.Name{}, err
	}
	tag, ok := constraint.Highest(tags)
	if !ok {
		return imagename.Name{}, fault.New(fault.Invalid, "no tag of %s satisfies the constraint %q: %s",
			name.Repository, req.Constraint, offerTags(tags))
	}
	return name.WithTag(tag)
}

// Tags lists the tags of an image's repository that a constraint allows, versions first and the highest first. It
// returns the same errors as Resolve.
func (r *Resolver) Tags(ctx context.Context, image, constraint string) ([]string, error) {
	name, err := imagename.Parse(image, r.cfg.DefaultPrefix)
	if err != nil {
		return nil, err
	}
	wanted, err := tagconstraint.Parse(constraint)
	if err != nil {
		return nil, err
	}
	tags, err := r.allTags(ctx, name.Repository, false)
	if err != nil || wanted.IsZero() {
		return tags, err
	}
	return slices.DeleteFunc(slices.Clone(tags), func(tag string) bool {
		_, ok := wanted.Highest([]string{tag})
		return !ok
	}), nil
}

// allTags lists all tags of a repository.
func (r *Resolver) allTags(ctx context.Context, repository string, renew bool) ([]string, error) {
	found, err := r.queryCache(ctx, key{repository: repository}, renew)
	if err != nil {
		return nil, annotateError(err, "list the tags of", repository)
	}
	return found.Value.tags, nil
}

// queryCache queries the cache and counts the source of its answer.
func (r *Resolver) queryCache(ctx context.Context, k key, renew bool) (found cache.Answer[answer], err error) {
	if renew {
		found, err = r.cache.Renew(ctx, k)
	} else {
		found, err = r.cache.Get(ctx, k)
	}
	r.countAnswer(ctx, found.Source)
	return found, err
}

// queryCached queries the cache without waiting, and counts answers.
func (r *Resolver) queryCached(ctx context.Context, k key) (cache.Answer[answer], bool) {
	found, ok := r.cache.Cached(ctx, k)
	if ok {
		r.countAnswer(ctx, found.Source)
	}
	return found, ok
}

func (r *Resolver) countAnswer(ctx context.Context, source cache.Source) {
	r.answers.Add(ctx, 1, metric.WithAttributes(attribute.String("source", string(source))))
}

// annotateError adds the operation and its subject to err.
func annotateError(err error, operation, subject string) error {
	out := fault.New(fault.Of(err), "%s %s: %w", operation, subject, err)
	if after, ok := fault.RetryAfter(err); ok {
		return fault.WithRetryAfter(out, after)
	}
	return out
}
