// SPDX-License-Identifier: Apache-2.0

// Package resolver resolves image references to digests. It answers from its cache while the cached answer is
// valid. Otherwise it queries the registry.
package resolver

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/krm-function-runner/function-runner/libs/fault"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/tagconstraint"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/cache"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/oci"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/registry"
)

// Config configures a Resolver. All fields except DefaultPrefix are required.
type Config struct {
	// DefaultPrefix is prepended to image names without a slash.
	DefaultPrefix string
	// Platforms are the platforms to choose from in multi-platform images, in order of preference.
	Platforms oci.Platforms
	Registry  *registry.Client
	// MaxBytes is the maximum size of the cache, in bytes.
	MaxBytes int64
	// Tags is the lifetime of cached answers about tags and lists of tags. Answers about digests never expire.
	Tags      cache.Lifetime
	Telemetry *telemetry.Telemetry
}

const (
	// fetchTimeout bounds a fetch from a registry, including all retries. It is shorter than the usual timeout of callers.
	// Callers thus receive the error of the fetch, instead of their own timeout.
	fetchTimeout = 20 * time.Second
	// maxFetches is the maximum number of fetches that run or wait. Most of them wait in the queue of their registry.
	maxFetches = 10_000
	// staleWait is the time to wait for a registry before an expired answer from the cache is used instead.
	staleWait = 2 * time.Second
	// keepFor is the time for which a tag is refreshed in the background after its last request. A function that
	// starts within this time need not wait for the registry.
	keepFor = time.Hour
	// maxKept is the maximum number of tags and lists of tags that are refreshed in the background. For each of them, the
	// resolver sends a small request to the registry every few minutes.
	maxKept = 1000
)

// Resolver implements the ImageResolverService. Callers share its responses and must not modify them.
type Resolver struct {
	cfg   Config
	cache *cache.Cache[key, answer]

	log     *slog.Logger
	tracer  trace.Tracer
	answers metric.Int64Counter
	moves   metric.Int64Counter
}

// New returns a resolver. Callers must run [Resolver.Run] while they use the resolver.
func New(cfg Config) *Resolver {
	const scope = "image-resolver"
	r := &Resolver{cfg: cfg, log: cfg.Telemetry.Log, tracer: cfg.Telemetry.Tracers.Tracer(scope)}
	r.cache = cache.New(cache.Config[key, answer]{
		Fetch: r.fetch, Lifetime: r.lifetimeOf, MaxBytes: cfg.MaxBytes, Size: sizeOf, MaxFetches: maxFetches,
		FetchTimeout: fetchTimeout, StaleWait: staleWait, KeepFor: keepFor, MaxKept: maxKept, Log: r.log,
	})
	meter := cfg.Telemetry.Meters.Meter(scope)
	r.answers = telemetry.Must(meter.Int64Counter("fn.resolver.answers",
		metric.WithDescription(
			"Answers about images and tags by their source: hit, renewal, failure or miss. Labels: source.")))
	r.moves = telemetry.Must(meter.Int64Counter("fn.resolver.tag.moves",
		metric.WithDescription("Tags that were found to point at another image than before.")))
	telemetry.Must(meter.Int64ObservableGauge("fn.resolver.cache.size", metric.WithUnit("By"),
		metric.WithDescription("Estimated size of the cache."), telemetry.Observe(r.cache.Bytes)))
	return r
}

// Run refreshes recently requested tags in the background until ctx is done. It then stops all fetches.
func (r *Resolver) Run(ctx context.Context) error { return r.cache.Run(ctx) }

// ForgetFailures removes failures from the cache, and causes a refresh of each image at its next use. It is called when
// credentials or certificates have changed.
func (r *Resolver) ForgetFailures() { r.cache.ForgetFailures() }

// ResolveImage returns the digest of an image and the command of its containers. Its errors have the classes
// fault.Invalid, Precondition, Unavailable and Exhausted. If ctx is done, they have the class of ctx's error.
func (r *Resolver) ResolveImage(
	ctx context.Context, req *imageresolverv1.ResolveImageRequest,
) (*imageresolverv1.ResolveImageResponse, error) {
	ctx, span := r.tracer.Start(ctx, "fn.resolve",
		trace.WithAttributes(attribute.String("container.image.name", req.GetImage())))
	defer span.End()
	resp, err := r.resolve(ctx, req)
	if err != nil {
		span.SetStatus(codes.Error, fault.Of(err).String())
	}
	return resp, err
}

func (r *Resolver) resolve(
	ctx context.Context, req *imageresolverv1.ResolveImageRequest,
) (*imageresolverv1.ResolveImageResponse, error) {
	name, err := SelectImage(req, r.cfg.DefaultPrefix, func(repository string) ([]string, error) {
		return r.allTags(ctx, repository, req.GetRefresh())
	}, errUnsatisfied)
	if err != nil {
		return nil, err
	}
	found, err := r.queryCache(ctx, imageKey(name), req.GetRefresh() && name.Digest == "")
	if err != nil {
		return nil, annotateError(err, "resolve", name.String())
	}
	return newResponse(name, found.Value.image), nil
}

// SelectImage returns the image name of a request, after applying its tag constraint. For this, the callback list
// returns the repository's tags. The highest tag that satisfies the constraint replaces the tag and digest in the name.
// If there is no such tag, the callback unsatisfied returns the error. The prefix is prepended to names without a
// slash.
func SelectImage(
	req *imageresolverv1.ResolveImageRequest, prefix string, list func(repository string) ([]string, error),
	unsatisfied func(repository, constraint string, tags []string) error,
) (imagename.Name, error) {
	name, err := imagename.Parse(req.GetImage(), prefix)
	if err != nil {
		return imagename.Name{}, err
	}
	constraint, err := tagconstraint.Parse(req.GetTagConstraint())
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
		return imagename.Name{}, unsatisfied(name.Repository, constraint.String(), tags)
	}
	return name.WithTag(tag)
}

func newResponse(name imagename.Name, image *oci.Image) *imageresolverv1.ResolveImageResponse {
	name.Digest = "" // the reference in a response contains no digest
	return &imageresolverv1.ResolveImageResponse{
		Reference: name.String(), Digest: image.Digest, IndexDigest: image.IndexDigest,
		Command: image.Command(), Entrypoint: image.Entrypoint, Cmd: image.Cmd, Env: image.Env,
		WorkingDir: image.WorkingDir, User: image.User,
		Platform: &imageresolverv1.Platform{
			Os: image.Platform.OS, Architecture: image.Platform.Architecture, Variant: image.Platform.Variant,
		},
		PullCredentials: image.PullCredentials,
	}
}

// ListTags lists the tags of a repository. Versions are listed first, from the highest to the lowest. Its errors have
// the same classes as the errors of ResolveImage.
func (r *Resolver) ListTags(
	ctx context.Context, req *imageresolverv1.ListTagsRequest,
) (*imageresolverv1.ListTagsResponse, error) {
	name, err := imagename.Parse(req.GetRepository(), r.cfg.DefaultPrefix)
	if err != nil {
		return nil, err
	}
	tags, err := r.allTags(ctx, name.Repository, false)
	if err != nil {
		return nil, err
	}
	return &imageresolverv1.ListTagsResponse{Tags: tags}, nil
}

func (r *Resolver) allTags(ctx context.Context, repository string, renew bool) ([]string, error) {
	found, err := r.queryCache(ctx, key{repository: repository}, renew)
	if err != nil {
		return nil, annotateError(err, "list the tags of", repository)
	}
	return found.Value.tags, nil
}

// queryCache returns the answer for a key from the cache or the registry, and counts it in a metric. If renew is
// true, it always queries the registry.
func (r *Resolver) queryCache(ctx context.Context, k key, renew bool) (found cache.Answer[answer], err error) {
	if renew {
		found, err = r.cache.Renew(ctx, k)
	} else {
		found, err = r.cache.Get(ctx, k)
	}
	r.answers.Add(ctx, 1, metric.WithAttributes(attribute.String("source", string(found.Source))))
	return found, err
}

func annotateError(err error, operation, subject string) error {
	out := fault.New(fault.Of(err), "%s %s: %w", operation, subject, err)
	if after, ok := fault.RetryAfter(err); ok {
		return fault.WithRetryAfter(out, after)
	}
	return out
}
