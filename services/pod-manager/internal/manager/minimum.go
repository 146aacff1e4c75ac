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
	// lookupsAtOnce is the maximum number of concurrent lookups. A silent registry blocks a lookup for half a minute.
	lookupsAtOnce = 16
	// lookupBackoff is the delay after a failed lookup: when everything starts together, the image-resolver may be
	// last.
	lookupBackoff = 2 * time.Second
	// lookupInterval is the interval of successful lookups, after which the new digest of a moved tag gets its pods. It
	// limits the backoff, too.
	lookupInterval = time.Minute
)

// keepMinimum regularly looks up the listed images until ctx is done, so that their pools keep the minimum of pods.
func (m *Manager) keepMinimum(ctx context.Context) {
	select {
	case <-m.config.Synced: // existing pods may be enough
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

// lookUpListed looks up each listed image, and reports whether all lookups succeeded.
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
				m.config.Log.WarnContext(ctx, "listed image not found; it is looked up again", "image", image, "error", err)
			}
			return err
		})
	}
	return lookups.Wait() == nil
}

// requestOf returns the request for a listed image. If its tag is a version constraint, the newest matching tag
// counts.
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

// listedImages returns the images whose pools keep a minimum of pods, and clears the minimum of other images.
func (l *loop) listedImages() []string {
	for image, f := range l.minimum {
		if _, listed := l.listedPods[image]; !listed {
			delete(l.minimum, image)
			l.setMinimum(f)
		}
	}
	return slices.Sorted(maps.Keys(l.listedPods))
}

// keepPods sets the minimum of an image's current function, and clears the minimum of its former function. Images that
// are no longer listed are ignored.
func (l *loop) keepPods(image string, what podspec.Function) {
	f := pool.Function{Reference: what.Reference, Digest: what.Digest}
	if _, listed := l.listedPods[image]; !listed {
		return // concurrently removed from the list
	}
	former, known := l.minimum[image]
	l.minimum[image], l.images[f] = f, what
	if known && former != f {
		l.setMinimum(former)
	}
	l.setMinimum(f)
}

// setMinimum sets the minimum of a function: the largest minimum of all listed images with this function, or 0.
func (l *loop) setMinimum(f pool.Function) {
	pods := 0
	for image, other := range l.minimum {
		if other == f {
			pods = max(pods, l.listedPods[image])
		}
	}
	l.handleEvent(pool.MinPodsSet{Function: f, Pods: pods})
}
