// SPDX-License-Identifier: Apache-2.0

// Package resolver answers what image references mean: from its cache while the
// cached answer is valid, and from the registry otherwise.
package resolver

import (
	"context"
	"slices"
	"time"

	"github.com/krm-function-runner/function-runner/libs/cache"
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/tagconstraint"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/oci"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/registry"
)

// Config is what a resolver needs.
type Config struct {
	// DefaultPrefix is where names without a slash are looked up.
	DefaultPrefix string
	// Platforms are chosen from if a request names none.
	Platforms oci.Platforms
	Registry  *registry.Client
	Cache     CacheConfig
	// FetchTimeout bounds one fetch, and Fetches how many may be under way.
	FetchTimeout time.Duration
	Fetches      int
	Telemetry    *telemetry.Telemetry
}

// CacheConfig bounds what is cached, and for how long.
type CacheConfig struct {
	MaxBytes int64
	// Tags is for tags and lists of tags. What a digest names never changes.
	Tags cache.Lifetime
}

// Request asks what an image is.
type Request struct {
	Image string
	// Constraint replaces the image's tag and digest, if not empty.
	Constraint string
	// Platform is what to choose; what it leaves out is as configured.
	Platform oci.Platform
	// Renew asks for the registry's present answer.
	Renew bool
}

// Result is what an image is.
type Result struct {
	// Reference is the canonical name with tag and without digest.
	Reference string
	Image     *oci.Image
	// Age is how long ago the registry was asked.
	Age time.Duration
}

// staleWait is how long a registry may take until requests get a stale answer, if there is one.
const staleWait = 2 * time.Second

const (
	// inUse is how long after a request a tag is refreshed before its answer expires: a function that is called now and
	// then does not wait for its registry in each cold start.
	inUse = time.Hour
	// maxKept bounds the tags and lists of tags for which that is done, by one small request every few minutes.
	maxKept = 1000
)

// Resolver answers requests.
type Resolver struct {
	cfg     Config
	cache   *cache.Cache[string, answer]
	metrics *metrics
}

// New returns a resolver. Its fetches end with [Resolver.Run].
func New(cfg Config) (*Resolver, error) {
	r := &Resolver{cfg: cfg, cache: cache.New(cache.Config[string, answer]{
		MaxBytes: cfg.Cache.MaxBytes, MaxFetches: cfg.Fetches, FetchTimeout: cfg.FetchTimeout, StaleWait: staleWait,
		Size:    func(key string, a answer) int64 { return int64(len(key)) + a.bytes() },
		Keeping: cache.Keeping{Max: maxKept, For: inUse, Every: cfg.Cache.Tags.TTL / 8},
	})}
	var err error
	if r.metrics, err = newMetrics(cfg.Telemetry, r.cache.Bytes); err != nil {
		return nil, err
	}
	return r, nil
}

// Run waits for ctx to end and ends all fetches.
func (r *Resolver) Run(ctx context.Context) error { return r.cache.Run(ctx) }

// ForgetFailures makes the resolver ask again where it failed, because credentials
// or certificates have changed.
func (r *Resolver) ForgetFailures() { r.cache.ForgetFailures() }

// Resolve resolves an image. Errors are of the classes of DESIGN: Invalid,
// Denied, Precondition, Unavailable, Exhausted, and those of ctx.
func (r *Resolver) Resolve(ctx context.Context, req Request) (Result, error) {
	name, err := r.name(req, func(repository string) ([]string, error) { return r.tags(ctx, repository, req.Renew) })
	if err != nil {
		return Result{}, err
	}
	found, err := r.get(ctx, r.imageQuery(name, req))
	if err != nil {
		return Result{}, annotate(err, "resolve", name.String())
	}
	return result(name, found), nil
}

// result returns what a request gets of an answer.
func result(name imagename.Name, found cache.Answer[answer]) Result {
	reference := name.Repository
	if name.Tag != "" {
		reference += ":" + name.Tag
	}
	return Result{Reference: reference, Image: found.Value.image, Age: found.Age}
}

// name returns the image that a request asks for, with the tag that its constraint selects
// from list.
func (r *Resolver) name(req Request, list func(repository string) ([]string, error)) (imagename.Name, error) {
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
		return imagename.Name{}, fault.New(
			fault.Invalid,
			"no tag of %s satisfies the constraint %q: %s",
			name.Repository,
			req.Constraint,
			offer(tags),
		)
	}
	return name.WithTag(tag)
}

// Tags lists the tags of an image's repository that a constraint allows, versions
// first and the highest first. Its errors are those of Resolve.
func (r *Resolver) Tags(ctx context.Context, image, constraint string) ([]string, error) {
	name, err := imagename.Parse(image, r.cfg.DefaultPrefix)
	if err != nil {
		return nil, err
	}
	wanted, err := tagconstraint.Parse(constraint)
	if err != nil {
		return nil, err
	}
	tags, err := r.tags(ctx, name.Repository, false)
	if err != nil || wanted.IsZero() {
		return tags, err
	}
	return slices.DeleteFunc(slices.Clone(tags), func(tag string) bool {
		_, ok := wanted.Highest([]string{tag})
		return !ok
	}), nil
}

// tags lists all tags of a repository.
func (r *Resolver) tags(ctx context.Context, repository string, renew bool) ([]string, error) {
	found, err := r.get(ctx, r.tagsQuery(repository, renew))
	if err != nil {
		return nil, annotate(err, "list the tags of", repository)
	}
	return found.Value.tags, nil
}

// get asks the cache and counts how it answered.
func (r *Resolver) get(ctx context.Context, q cache.Query[string, answer]) (cache.Answer[answer], error) {
	found, err := r.cache.Get(ctx, q)
	r.metrics.answered(ctx, found.Source)
	return found, err
}

// annotate adds to err what was being done, and with what.
func annotate(err error, doing, what string) error {
	out := fault.New(fault.Of(err), "%s %s: %w", doing, what, err)
	if after, ok := fault.RetryAfter(err); ok {
		return fault.WithRetryAfter(out, after)
	}
	return out
}
