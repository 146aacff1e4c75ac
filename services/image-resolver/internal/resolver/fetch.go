// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/cache"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/oci"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/registry"
)

// key is the cache key of a query to a registry. If it contains a tag or digest, the query returns an image for one of
// the configured platforms. Otherwise, the query returns the list of the repository's tags.
type key struct{ repository, tag, digest string }

// answer is a cached answer of a registry, either an image or a list of tags.
type answer struct {
	image *oci.Image
	tags  []string
}

// sizeOf estimates the memory that an answer and its key occupy in the cache, in bytes.
func sizeOf(k key, a answer) int64 {
	const text = 16 // size of a string header, and unit of memory for the string's bytes
	n := int64(len(k.repository) + len(k.tag) + len(k.digest) + 3*text + cap(a.tags)*text)
	if a.image != nil {
		n += a.image.MemoryBytes()
	}
	for _, tag := range a.tags {
		n += int64((len(tag) + text - 1) / text * text)
	}
	return n
}

// imageKey returns the cache key of an image.
func imageKey(name imagename.Name) key {
	if name.Digest != "" {
		return key{repository: name.Repository, digest: name.Digest}
	}
	return key{repository: name.Repository, tag: name.Tag}
}

// lifetimeOf returns the lifetime of a cached answer. An image that a caller requests by digest never expires, because
// its content cannot change. If the registry could not return the image, this failure does expire.
func (r *Resolver) lifetimeOf(k key) cache.Lifetime {
	if k.digest != "" {
		return cache.Lifetime{Failure: r.cfg.Tags.Failure}
	}
	return r.cfg.Tags
}

func (r *Resolver) fetch(ctx context.Context, k key) (a answer, err error) {
	f := fetch{resolver: r, key: k}
	err = r.cfg.Registry.With(ctx, k.repository, func(ctx context.Context, s *registry.Session) error {
		if k.tag != "" || k.digest != "" {
			a.image, err = f.fetchImage(ctx, s)
		} else {
			a.tags, err = s.Tags(ctx)
		}
		return err
	})
	a.tags = orderTags(a.tags)
	return a, err
}

// fetch is a query of a registry for a single image.
type fetch struct {
	resolver *Resolver
	key      key
}

// fetchImage reads the image from the registry. If the cache contains the image, fetchImage first sends a HEAD request,
// and returns the cached image if the tag or digest still refers to it.
func (f fetch) fetchImage(ctx context.Context, s *registry.Session) (*oci.Image, error) {
	reference := cmp.Or(f.key.tag, f.key.digest)
	old, known := f.resolver.cache.Peek(f.key)
	if known {
		digest, err := s.Head(ctx, reference)
		if err == nil && digest == old.image.TopDigest() {
			return f.updateCredentials(old.image, s), nil
		}
		// The answer to GET contains the reason for a rejection. We therefore continue with GET if the registry rejected
		// HEAD. After all other errors, we return, because the registry is unavailable.
		if err != nil && fault.Of(err) != fault.Precondition {
			return nil, err
		}
	}
	image, err := f.readImage(ctx, s, reference)
	if err != nil {
		return nil, err
	}
	if known && image.TopDigest() != old.image.TopDigest() {
		f.resolver.moves.Add(ctx, 1)
		f.resolver.log.InfoContext(ctx, "tag has moved", "repository", f.key.repository, "tag", f.key.tag,
			"from", old.image.TopDigest(), "to", image.TopDigest())
	}
	return image, nil
}

// readImage reads the image with the given tag or digest from the registry. From a multi-platform index, it chooses an
// image for a configured platform.
func (f fetch) readImage(ctx context.Context, s *registry.Session, reference string) (*oci.Image, error) {
	top, err := s.Manifest(ctx, reference)
	if err != nil {
		return nil, err
	}
	byDigest := key{repository: f.key.repository, digest: top.Digest}
	if known, ok := f.resolver.cache.Peek(byDigest); ok && f.key.tag != "" {
		return f.updateCredentials(known.image, s), nil // the image is cached under its digest
	}
	image, err := f.chooseMember(ctx, s, top, nil, maxDepth)
	if err != nil {
		return nil, err
	}
	if top.IsIndex() {
		image.IndexDigest = top.Digest
	}
	image.PullCredentials = s.WantedCredentials()
	if f.key.tag != "" {
		f.resolver.cache.Put(byDigest, answer{image: image})
	}
	return image, nil
}

// updateCredentials sets PullCredentials of a cached image if the session needed credentials. This happens, for
// example, after the repository has become private. The cache keeps the change for later requests by digest.
// PullCredentials is never cleared, because the session may have used a mirror without credentials.
func (f fetch) updateCredentials(cached *oci.Image, s *registry.Session) *oci.Image {
	if cached.PullCredentials || !s.WantedCredentials() {
		return cached
	}
	image := *cached
	image.PullCredentials = true
	byDigest := key{repository: f.key.repository, digest: image.TopDigest()}
	f.resolver.cache.Put(byDigest, answer{image: &image})
	return &image
}

// maxDepth is the maximum number of nested indexes on the way to an image.
const maxDepth = 3

// chooseMember returns the image of the manifest m. If m is an index, it returns the first image in the index for a
// configured platform. The argument named is the platform of m in its parent index. It is nil if there is no parent
// index, or if the parent names no platform.
func (f fetch) chooseMember(
	ctx context.Context, s *registry.Session, m *oci.Manifest, named *oci.Platform, depth int,
) (*oci.Image, error) {
	if !m.IsIndex() {
		return f.readConfig(ctx, s, m, named)
	}
	if depth == 0 {
		return nil, fault.New(fault.Precondition, "indexes are nested more than %d deep", maxDepth)
	}
	platforms := f.resolver.cfg.Platforms
	members, err := m.Select(platforms)
	if err != nil {
		return nil, err
	}
	var first error
	for _, child := range members {
		member, err := s.Manifest(ctx, child.Digest)
		if err != nil {
			return nil, fmt.Errorf("the image for %s: %w", platforms, err)
		}
		image, err := f.chooseMember(ctx, s, member, child.Platform, depth-1)
		if err == nil || fault.Of(err) != fault.Precondition {
			return image, err
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// readConfig reads the image's configuration from the registry. The argument named is the image's platform in its
// index. It overrides the platform in the configuration. If named is nil, that platform must be configured.
func (f fetch) readConfig(
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
	if platforms := f.resolver.cfg.Platforms; !platforms.Accept(image.Platform) {
		return nil, fault.New(fault.Precondition, "the image is for %s, this machine is %s: push one for that platform too",
			image.Platform, platforms)
	}
	return image, nil
}

// orderTags returns the version tags from the highest to the lowest version, followed by all other tags by name.
func orderTags(tags []string) []string {
	var versions []*semver.Version
	var others []string
	for _, tag := range tags {
		if v, err := semver.NewVersion(tag); err == nil {
			versions = append(versions, v)
		} else {
			others = append(others, tag)
		}
	}
	slices.SortFunc(versions, func(a, b *semver.Version) int {
		return cmp.Or(b.Compare(a), cmp.Compare(a.Original(), b.Original()))
	})
	slices.Sort(others)
	ordered := make([]string, 0, len(tags))
	for _, v := range versions {
		ordered = append(ordered, v.Original())
	}
	return append(ordered, others...)
}

// offered is the maximum number of tags that an error message suggests.
const offered = 5

// errUnsatisfied returns the error for a repository without a tag that satisfies the constraint.
func errUnsatisfied(repository, constraint string, tags []string) error {
	offer := "it has no tags"
	switch {
	case len(tags) > offered:
		offer = fmt.Sprintf("the highest of its %d are %s", len(tags), strings.Join(tags[:offered], ", "))
	case len(tags) > 0:
		offer = "it has " + strings.Join(tags, ", ")
	}
	return fault.New(fault.Invalid, "no tag of %s satisfies the constraint %q: %s", repository, constraint, offer)
}
