// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"fmt"

	"github.com/krm-function-runner/function-runner/libs/cache"
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/oci"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/registry"
)

// answer is a cached answer of a registry: an image or a list of tags.
type answer struct {
	image *oci.Image
	tags  []string
}

// bytes is what an answer takes in memory.
func (a answer) bytes() int64 {
	const text = 16 // the size of a string header, and the size to which the content of a string is rounded up
	n := int64(cap(a.tags) * text)
	if a.image != nil {
		n += a.image.MemoryBytes()
	}
	for _, tag := range a.tags {
		n += int64((len(tag) + text - 1) / text * text)
	}
	return n
}

// forever is the lifetime of what a digest means. A failure to fetch it expires.
func (r *Resolver) forever() cache.Lifetime {
	return cache.Lifetime{Failure: r.cfg.Cache.Tags.Failure}
}

// tagsQuery asks for all tags of a repository.
func (r *Resolver) tagsQuery(repository string, renew bool) cache.Query[string, answer] {
	return cache.Query[string, answer]{
		Key: "tags " + repository, Lifetime: r.cfg.Cache.Tags, Renew: renew, Keep: true,
		Fetch: func(ctx context.Context) (a answer, err error) {
			err = r.cfg.Registry.With(ctx, repository, func(ctx context.Context, s *registry.Session) error {
				a.tags, err = s.Tags(ctx)
				return err
			})
			a.tags = order(a.tags)
			return a, err
		},
	}
}

// imageQuery asks for an image on the first platform that it has.
func (r *Resolver) imageQuery(name imagename.Name, req Request) cache.Query[string, answer] {
	platforms := r.cfg.Platforms.For(req.Platform)
	q := cache.Query[string, answer]{Key: imageKey(name.Key(), platforms), Lifetime: r.forever()}
	f := fetch{resolver: r, repository: name.Repository, reference: name.Digest, platforms: platforms}
	if name.Digest == "" {
		q.Lifetime, q.Renew, q.Keep = r.cfg.Cache.Tags, req.Renew, true
		f.reference, f.isTag, f.key = name.Tag, true, q.Key
	}
	q.Fetch = f.run
	return q
}

// imageKey is the key of an image, by tag or by digest, on platforms.
func imageKey(image string, platforms oci.Platforms) string { return image + " " + platforms.String() }

// fetch gets an image from its registry.
type fetch struct {
	resolver   *Resolver
	repository string
	// reference is a tag or a digest.
	reference string
	isTag     bool
	key       string
	platforms oci.Platforms
}

// run gets the image.
func (f fetch) run(ctx context.Context) (a answer, err error) {
	err = f.resolver.cfg.Registry.With(ctx, f.repository, func(ctx context.Context, s *registry.Session) error {
		a.image, err = f.from(ctx, s)
		return err
	})
	return a, err
}

// from gets the image in a session. A tag that was known before costs one request
// without a body if it has not moved.
func (f fetch) from(ctx context.Context, s *registry.Session) (*oci.Image, error) {
	old, known := f.previous()
	if known {
		digest, err := s.Head(ctx, f.reference)
		if err == nil && digest == old.TopDigest() {
			return old, nil
		}
		// A refusal of HEAD comes without words: GET brings them.
		if err != nil && fault.Of(err) != fault.Precondition {
			return nil, err
		}
	}
	image, err := f.image(ctx, s)
	if err != nil {
		return nil, err
	}
	if known && image.TopDigest() != old.TopDigest() {
		f.resolver.metrics.moved(ctx, f.repository, f.reference, old.TopDigest(), image.TopDigest())
	}
	return image, nil
}

// previous returns what a tag was before.
func (f fetch) previous() (*oci.Image, bool) {
	if !f.isTag {
		return nil, false
	}
	old, ok := f.resolver.cache.Peek(f.key)
	return old.image, ok
}

// image gets the manifest, the platform's one if it is an index, and its configuration.
func (f fetch) image(ctx context.Context, s *registry.Session) (*oci.Image, error) {
	top, err := s.Manifest(ctx, f.reference)
	if err != nil {
		return nil, err
	}
	key := imageKey(f.repository+"@"+top.Digest, f.platforms)
	if kept, ok := f.resolver.cache.Peek(key); ok && f.isTag {
		return kept.image, nil // another tag of the same image
	}
	image, err := f.choose(ctx, s, top, nil, maxDepth)
	if err != nil {
		return nil, err
	}
	if top.IsIndex() {
		image.IndexDigest = top.Digest
	}
	image.PullCredentials = s.WantedCredentials()
	if f.isTag {
		f.resolver.cache.Put(key, answer{image: image})
	}
	return image, nil
}

// maxDepth is how deep indexes may be nested.
const maxDepth = 3

// choose returns the platform's image of a manifest or an index. If members of an index name no platform, the first one
// counts whose configuration is for the platform. Named is the platform that an index names for the manifest, or nil.
func (f fetch) choose(
	ctx context.Context, s *registry.Session, m *oci.Manifest, named *oci.Platform, depth int,
) (*oci.Image, error) {
	if !m.IsIndex() {
		return f.config(ctx, s, m, named)
	}
	if depth == 0 {
		return nil, fault.New(fault.Precondition, "indexes are nested more than %d deep", maxDepth)
	}
	members, err := m.Select(f.platforms)
	if err != nil {
		return nil, err
	}
	var first error
	for _, child := range members {
		member, err := s.Manifest(ctx, child.Digest)
		if err != nil {
			return nil, fmt.Errorf("the image for %s: %w", f.platforms, err)
		}
		image, err := f.choose(ctx, s, member, child.Platform, depth-1)
		if err == nil || fault.Of(err) != fault.Precondition {
			return image, err
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// config returns the image of a manifest. It must be for one of the platforms, by its index or by its configuration.
func (f fetch) config(
	ctx context.Context, s *registry.Session, m *oci.Manifest, named *oci.Platform,
) (*oci.Image, error) {
	config, err := s.Blob(ctx, m.Config)
	if err != nil {
		return nil, err
	}
	image, err := oci.ParseConfig(m, config)
	if err != nil {
		return nil, err
	}
	if named != nil {
		image.Platform = *named
		return image, nil
	}
	if !f.platforms.Accept(image.Platform) {
		return nil, fault.New(fault.Precondition, "the image is for %s, this machine is %s: push one for that platform too",
			image.Platform, f.platforms)
	}
	return image, nil
}
