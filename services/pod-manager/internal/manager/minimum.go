// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/retry"
	"github.com/krm-function-runner/function-runner/libs/tagconstraint"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

const (
	// lookupsAtOnce is the maximum number of concurrent lookups of images with a minimum number of pods. Lookups are
	// concurrent because a silent registry blocks a lookup for half a minute.
	lookupsAtOnce = 16
	// lookupBackoff is the delay before the first retry after failed lookups. It is short, because the image-resolver may
	// start slightly later than this program.
	lookupBackoff = 2 * time.Second
	// lookupInterval is the interval at which images with a minimum number of pods are looked up. After a tag moved to a
	// new digest, pods are created for this digest within the interval. It is also the maximum delay between retries of
	// failed lookups.
	lookupInterval = time.Minute
)

// keepMinimum maintains the configured minimum numbers of pods until ctx is done. It looks up the images regularly,
// because their tags may move to other digests.
func (m *Manager) keepMinimum(ctx context.Context) {
	select {
	case <-m.config.Synced: // until then, enough pods may exist that the pools do not know
	case <-ctx.Done():
		return
	}
	backoff := retry.Backoff{First: lookupBackoff, Max: lookupInterval}
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-next.C:
		case <-m.relisted:
			backoff.Reset()
		case <-ctx.Done():
			return
		}
		if m.lookUpListed(ctx) {
			backoff.Reset()
			next.Reset(lookupInterval)
		} else {
			next.Reset(backoff.Next())
		}
	}
}

// lookUpListed looks up each image with a minimum number of pods, and reports whether all lookups succeeded.
func (m *Manager) lookUpListed(ctx context.Context) bool {
	images, err := askLoop(ctx, m.Inbox, (*loop).listedImages)
	if err != nil {
		return false
	}
	var lookups errgroup.Group
	lookups.SetLimit(lookupsAtOnce)
	for _, image := range images {
		lookups.Go(func() error {
			resolved, err := m.config.Images.ResolveImage(ctx, requestOf(image))
			if err == nil {
				m.postMessage(func(l *loop) { l.keepPods(image, functionOf(resolved)) })
			} else if ctx.Err() == nil {
				m.config.Log.WarnContext(ctx, "listed image not found, retrying", "image", image, "error", err)
			}
			return err
		})
	}
	return lookups.Wait() == nil
}

// requestOf returns the request to look up a configured image. If its tag is a version constraint, such as ~0.4, the
// request is for the newest tag that satisfies the constraint.
func requestOf(image string) *imageresolverv1.ResolveImageRequest {
	i := strings.LastIndexByte(image, ':')
	if i < 0 || strings.ContainsAny(image[i:], "@/") || strings.ContainsRune(image, '@') {
		return &imageresolverv1.ResolveImageRequest{Image: image}
	}
	c, err := tagconstraint.Parse(image[i+1:])
	if _, exact := c.Exact(); err != nil || exact {
		return &imageresolverv1.ResolveImageRequest{Image: image}
	}
	return &imageresolverv1.ResolveImageRequest{Image: image[:i], TagConstraint: c.String()}
}

// listedImages returns the images with a minimum number of pods. It removes minimums that are no longer configured.
func (l *loop) listedImages() []string {
	for image, f := range l.minimum {
		if _, listed := l.listedPods[image]; !listed {
			delete(l.minimum, image)
			l.setMinimum(f)
		}
	}
	return slices.Sorted(maps.Keys(l.listedPods))
}

// keepPods assigns an image's minimum number of pods to the digest that the lookup found. If the tag moved, the pool of
// the former digest loses this minimum.
func (l *loop) keepPods(image string, what podspec.Function) {
	f := pool.Function{Reference: what.Reference, Digest: what.Digest}
	if _, listed := l.listedPods[image]; !listed {
		return // the image was removed from the configuration during the lookup
	}
	former, known := l.minimum[image]
	l.minimum[image] = f
	l.images[f] = what
	if known && former != f {
		l.setMinimum(former)
	}
	l.setMinimum(f)
}

// setMinimum passes a function's minimum number of pods to the pools. If several images refer to the function, the
// largest minimum applies. If no image refers to it, the minimum is 0.
func (l *loop) setMinimum(f pool.Function) {
	pods := 0
	for image, other := range l.minimum {
		if other == f {
			pods = max(pods, l.listedPods[image])
		}
	}
	l.handleEvent(pool.MinPodsSet{Function: f, Pods: pods})
}
