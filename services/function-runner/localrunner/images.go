// SPDX-License-Identifier: Apache-2.0

package localrunner

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/image-resolver/imageresolver"
)

// Images is the store of function images on this machine. It pulls missing images from registries.
type Images struct {
	*imageresolver.Local
	stop    context.CancelFunc
	running *errgroup.Group
}

// StoredImage is an image in the store.
type StoredImage = imageresolver.StoredImage

// OpenImages opens the image store of this machine. If this program runs as root, the users of sandboxes can read
// the store. If offline is true, the store never calls a registry.
func OpenImages(ctx context.Context, s Settings, offline bool) (*Images, error) {
	return openImages(ctx, s, offline, Group())
}

// openImages is like [OpenImages], but processes of the given group can read the store. If group is zero, no group can
// read it.
func openImages(ctx context.Context, s Settings, offline bool, group int) (*Images, error) {
	log := telemetry.Discard()
	var resolver *imageresolver.Resolver
	if !offline {
		var err error
		frame := servermain.Frame{Telemetry: log, Health: new(serve.Health)}
		resolver, err = imageresolver.NewResolver(s.ImageResolver, frame)
		if err != nil {
			return nil, err
		}
	}
	local, err := imageresolver.OpenLocal(s.Store(), resolver, s.Gateway.DefaultImagePrefix, group, log.Log)
	if err != nil {
		return nil, err
	}
	// The image-resolver's background tasks run until [Images.Close], even if the caller cancels ctx before.
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	running, ctx := errgroup.WithContext(ctx)
	if resolver != nil {
		for _, task := range resolver.Tasks() {
			running.Go(func() error { return task(ctx) })
		}
	}
	return &Images{Local: local, stop: stop, running: running}, nil
}

// Close closes the store, and stops pulls and registry calls.
func (i *Images) Close() error {
	i.Local.Close()
	i.stop()
	return i.running.Wait()
}
