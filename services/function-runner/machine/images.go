// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/krm-function-runner/function-runner/libs/program"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/image-resolver/imageresolver"
)

// Images is the image store of this machine. It pulls missing images from registries.
type Images struct {
	*imageresolver.Local
	stop    context.CancelFunc
	running *errgroup.Group
}

// StoredImage is an image in the store.
type StoredImage = imageresolver.StoredImage

// OpenImages opens the image store for sandboxes whose user is not root. If offline is true, it calls no registry.
func OpenImages(ctx context.Context, s Settings, offline bool) (*Images, error) {
	return openImages(ctx, s, offline, Group())
}

// openImages opens the image store for a group. Zero means no group.
func openImages(ctx context.Context, s Settings, offline bool, group int) (*Images, error) {
	log := telemetry.Discard()
	var resolver *imageresolver.Resolver
	if !offline {
		var err error
		resolver, err = imageresolver.NewResolver(s.ImageResolver, program.Frame{Telemetry: log, Health: new(serve.Health)})
		if err != nil {
			return nil, err
		}
	}
	local, err := imageresolver.OpenLocal(s.Store(), resolver, s.Gateway.DefaultImagePrefix, group, log.Log)
	if err != nil {
		return nil, err
	}
	// Registry calls finish before the store closes.
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	running, ctx := errgroup.WithContext(ctx)
	if resolver != nil {
		for _, task := range resolver.Tasks() {
			running.Go(func() error { return task(ctx) })
		}
	}
	return &Images{Local: local, stop: stop, running: running}, nil
}

// Close stops pulls and registry calls.
func (i *Images) Close() error {
	i.Local.Close()
	i.stop()
	return i.running.Wait()
}
