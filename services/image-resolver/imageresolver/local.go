// SPDX-License-Identifier: Apache-2.0

package imageresolver

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/krm-function-runner/function-runner/libs/fault"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/imagestore"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/oci"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/resolver"
)

// Local resolves image names and stores the files of images on disk. It also stores the digest to which each name
// was resolved, so that stored images can be used offline, without their registries.
type Local struct {
	*Store
	resolver *Resolver // nil if the store is offline
	log      *slog.Logger
	dir      string
	prefix   string

	mu      sync.Mutex
	pending map[string][]imagestore.Name // names of images that are not in the store yet, by digest
}

// maxPending is the maximum number of images in Local.pending. It also limits the number of names for each image.
const maxPending = 1000

// OpenLocal opens a store of images on disk, like [OpenStore]. If r is nil, the store is offline. It then resolves
// image names to the digests that it stored last. The prefix is prepended to names without a slash.
func OpenLocal(cfg StoreConfig, r *Resolver, prefix string, group int, log *slog.Logger) (*Local, error) {
	l := &Local{resolver: r, log: log, dir: cfg.Dir, prefix: prefix, pending: map[string][]imagestore.Name{}}
	var err error
	if r != nil {
		l.Store, err = OpenStore(cfg, r, group, log)
		return l, err
	}
	cfg.Source = offline{l}
	cfg.Group = group
	cfg.Log = log
	l.Store, err = imagestore.Open(cfg)
	return l, err
}

// ResolveImage resolves an image name to a digest. An offline store resolves only the names that it has stored. Each
// error has a class that package fault defines, such as fault.Unavailable.
func (l *Local) ResolveImage(
	ctx context.Context, req *imageresolverv1.ResolveImageRequest,
) (*imageresolverv1.ResolveImageResponse, error) {
	if l.resolver == nil {
		return l.findStored(req)
	}
	resolved, err := l.resolver.ResolveImage(ctx, req)
	if err != nil {
		return nil, err
	}
	repository, tag := imagename.SplitTag(resolved.GetReference())
	if req.GetTagConstraint() == "" && strings.Contains(req.GetImage(), "@") {
		tag = "" // registries ignore the tag of a name with a digest
	}
	l.noteName(ctx, imagestore.Name{
		Repository: repository, Tag: tag, Digest: resolved.GetDigest(), IndexDigest: resolved.GetIndexDigest(),
		Command: resolved.GetCommand(), Entrypoint: resolved.GetEntrypoint(), Env: resolved.GetEnv(),
		WorkingDir: resolved.GetWorkingDir(), User: resolved.GetUser(),
	})
	return resolved, nil
}

// noteName stores an image name with its digest if the store already contains the image. Otherwise it keeps the
// name in memory until the image is stored.
func (l *Local) noteName(ctx context.Context, name imagestore.Name) {
	if l.Has(name.Digest) {
		l.storeName(ctx, name)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	same := l.pending[name.Digest]
	if len(l.pending) < maxPending && len(same) < maxPending && !slices.ContainsFunc(same, name.Same) {
		l.pending[name.Digest] = append(same, name)
	}
}

// storeName stores an image name for offline use. It only logs errors, because the image can run without a stored name.
func (l *Local) storeName(ctx context.Context, name imagestore.Name) {
	if err := l.Remember(ctx, name); err != nil {
		l.log.WarnContext(ctx, "name of an image not written down", "repository", name.Repository, "error", err)
	}
}

// Open is like [Store.Open], but also stores the image's names, so that an offline store can later resolve them.
func (l *Local) Open(
	ctx context.Context, repository, digest string, phase func(string),
) (root string, release func(), err error) {
	root, release, err = l.Store.Open(ctx, repository, digest, phase)
	if err != nil {
		return "", nil, err
	}
	l.mu.Lock()
	names := l.pending[digest]
	delete(l.pending, digest)
	l.mu.Unlock()
	for _, name := range names {
		l.storeName(ctx, name)
	}
	return root, release, nil
}

// ListTags lists the tags of a repository. An offline store lists only the tags of images that it contains.
func (l *Local) ListTags(
	ctx context.Context, req *imageresolverv1.ListTagsRequest,
) (*imageresolverv1.ListTagsResponse, error) {
	if l.resolver != nil {
		return l.resolver.ListTags(ctx, req)
	}
	names, err := l.Names()
	if err != nil {
		return nil, err
	}
	tags := tagsOf(names, req.GetRepository())
	if len(tags) == 0 {
		return nil, l.missingImage(req.GetRepository())
	}
	return &imageresolverv1.ListTagsResponse{Tags: tags}, nil
}

func tagsOf(names []imagestore.Name, repository string) (tags []string) {
	for _, name := range names {
		if name.Repository == repository && name.Tag != "" {
			tags = append(tags, name.Tag)
		}
	}
	return tags
}

// findStored resolves an image name offline, to the digest that was stored when the name was last resolved.
func (l *Local) findStored(req *imageresolverv1.ResolveImageRequest) (*imageresolverv1.ResolveImageResponse, error) {
	names, err := l.Names()
	if err != nil {
		return nil, err
	}
	list := func(repository string) ([]string, error) { return tagsOf(names, repository), nil }
	unsatisfied := func(repository, constraint string, _ []string) error {
		return l.missingImage(repository + " with a tag that satisfies " + constraint)
	}
	name, err := resolver.SelectImage(req, l.prefix, list, unsatisfied)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(names, func(stored imagestore.Name) bool { return leadsTo(stored, name) })
	if i < 0 {
		return nil, l.missingImage(name.String())
	}
	found := names[i]
	name.Digest = "" // the reference in a response contains no digest
	return &imageresolverv1.ResolveImageResponse{
		Reference: name.String(), Digest: found.Digest, IndexDigest: found.IndexDigest,
		Command: found.Command, Entrypoint: found.Entrypoint, Env: found.Env, WorkingDir: found.WorkingDir,
		User: found.User,
	}, nil
}

// leadsTo reports whether the requested name leads to a stored image. A requested digest must be the digest of the
// image or of its index. Without a requested digest, the repository and the tag must be equal.
func leadsTo(stored imagestore.Name, name imagename.Name) bool {
	if name.Digest != "" {
		return stored.Digest == name.Digest || stored.IndexDigest == name.Digest
	}
	return stored.Repository == name.Repository && stored.Tag == name.Tag
}

func (l *Local) missingImage(image string) error {
	return fault.New(fault.Precondition, "%s is not in the image store %s, and registries are not called offline",
		image, l.dir)
}

// Pull pulls an image into the store and returns its resolved name. If the constraint is not empty, Pull chooses a
// tag that satisfies it. During the pull, it calls phase with texts about its progress.
func (l *Local) Pull(ctx context.Context, image, constraint string, phase func(string)) (reference string, err error) {
	resolved, err := l.ResolveImage(ctx, &imageresolverv1.ResolveImageRequest{Image: image, TagConstraint: constraint})
	if err != nil {
		return "", err
	}
	repository, _ := imagename.SplitTag(resolved.GetReference())
	_, release, err := l.Open(ctx, repository, resolved.GetDigest(), phase)
	if err != nil {
		return "", err
	}
	release()
	return resolved.GetReference(), nil
}

// offline is the image source of an offline store. It rejects all pulls, so that only stored images can be used.
type offline struct{ local *Local }

func (o offline) Image(_ context.Context, repository, digest string) (*oci.Manifest, oci.RootFS, error) {
	return nil, oci.RootFS{}, o.local.missingImage(repository + "@" + digest)
}

func (o offline) Layer(_ context.Context, repository, digest string, _ imagestore.ReadLayer) error {
	return o.local.missingImage(repository + "@" + digest)
}
