// SPDX-License-Identifier: Apache-2.0

// Package machine runs functions of images on this machine, with gateway, image-resolver and launcher of sandboxes in
// one process. The process requires no port, no Kubernetes and no daemon.
//
// fnctl uses all of the package, function-runner the settings of sandboxes.
package machine

import (
	"context"
	"errors"
	"net"
	"time"

	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/program"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
)

// Runner is a function runner in this process.
type Runner struct {
	cfg      Config
	images   *Images
	starts   string // description of the launcher
	listener *bufconn.Listener
	stop     context.CancelFunc
	ended    chan error
}

// Config configures a Runner.
type Config struct {
	Settings
	// Offline makes the runner use images in the store only, and call no registry.
	Offline bool
	// Environment contains variables of functions in addition to the environment of their images, as KEY=value.
	Environment []string
}

const (
	// connectionBytes is the buffer size of a connection within the process.
	connectionBytes = 1 << 20
	// stopTimeout is the maximum time for which a closed runner waits for evaluations. Their callers are gone.
	stopTimeout = 10 * time.Second
)

// Start starts a runner. It returns an error if this machine cannot start sandboxes. Callers must close the runner.
func Start(ctx context.Context, cfg Config) (*Runner, error) {
	frame := program.Frame{Telemetry: telemetry.Discard(), Health: new(serve.Health)}
	sandboxes, err := gateway.FindSandboxes(ctx, cfg.Gateway, frame)
	if err == nil && sandboxes == nil {
		err = errOff
	}
	if err != nil {
		return nil, err
	}
	images, err := OpenImages(ctx, cfg.Settings, cfg.Offline)
	if err != nil && sandboxes.Direct() { // functions run as this user, who may lack the right to share the store
		images, err = openImages(ctx, cfg.Settings, cfg.Offline, 0)
	}
	if err != nil {
		return nil, errors.Join(err, sandboxes.Close())
	}
	// No ports: their settings are for servers.
	cfg.Gateway.StatusAddress, cfg.Gateway.TLSAddress = "", ""
	component, err := gateway.New(cfg.Gateway, gateway.Services{
		Sandboxes: sandboxes, ImageResolver: extendedImages{images, cfg.Environment}, Images: images,
	}, frame)
	if err != nil {
		return nil, errors.Join(err, images.Close(), sandboxes.Close())
	}
	r := &Runner{
		cfg: cfg, images: images, starts: sandboxes.String(),
		listener: bufconn.Listen(connectionBytes), ended: make(chan error, 1),
	}
	component.Endpoints[0].Listener = r.listener
	ctx, r.stop = context.WithCancel(context.WithoutCancel(ctx)) // [Runner.Close] cancels it after the last evaluation
	go func() {
		life := serve.Config{ShutdownTimeout: stopTimeout}
		r.ended <- serve.Run(ctx, life, frame.Telemetry.Log, frame.Health, component)
	}()
	return r, nil
}

// Sandboxes returns the description of the launcher for users.
func (r *Runner) Sandboxes() string { return r.starts }

// Dial connects to the runner's gateway.
func (r *Runner) Dial(ctx context.Context) (net.Conn, error) { return r.listener.DialContext(ctx) }

// Close stops the runner. If the runner had stopped before, Close returns the reason.
func (r *Runner) Close() error {
	r.stop()
	return errors.Join(<-r.ended, r.images.Close())
}

// extendedImages adds variables to the environment of images.
type extendedImages struct {
	*Images
	environment []string
}

// ResolveImage implements the interface of the gateway.
func (e extendedImages) ResolveImage(
	ctx context.Context, req *imageresolverv1.ResolveImageRequest,
) (*imageresolverv1.ResolveImageResponse, error) {
	resolved, err := e.Images.ResolveImage(ctx, req)
	if err != nil || len(e.environment) == 0 {
		return resolved, err
	}
	resolved = proto.CloneOf(resolved) // the resolver caches it
	resolved.Env = append(resolved.Env, e.environment...)
	return resolved, nil
}
