// SPDX-License-Identifier: Apache-2.0

// Package machine runs functions of images on this machine alone: the gateway, the image-resolver and
// sandboxes are in the process, which has no port and needs neither Kubernetes nor a daemon.
//
// function-runner has the settings of sandboxes from here, and fnctl all of it.
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
	starts   string // sandboxes
	listener *bufconn.Listener
	stop     context.CancelFunc
	ended    chan error
}

// Config is how a runner works.
type Config struct {
	Settings
	// Offline uses the images in the store, and calls no registry.
	Offline bool
	// Environment is what functions get beside the environment of their images, as KEY=value.
	Environment []string
}

const (
	// connectionBytes is how much a connection within the process buffers.
	connectionBytes = 1 << 20
	// stopTimeout is how long evaluations may take to end after a runner is closed: their callers have
	// left.
	stopTimeout = 10 * time.Second
)

// Start starts a runner. It is an error if this machine cannot start sandboxes. The caller closes the
// runner.
func Start(ctx context.Context, cfg Config) (*Runner, error) {
	frame := program.Frame{Telemetry: telemetry.Discard(), Health: new(serve.Health)}
	sandboxes, err := gateway.FindSandboxes(ctx, cfg.Gateway, frame)
	if err == nil && sandboxes == nil {
		err = errOff
	}
	if err != nil {
		return nil, err
	}
	group := Group()
	if sandboxes.Direct() {
		group = 0 // functions run as this user
	}
	images, err := openImages(ctx, cfg.Settings, cfg.Offline, group)
	if err != nil {
		return nil, errors.Join(err, sandboxes.Close())
	}
	// No port: it is a setting of servers.
	cfg.Gateway.StatusAddress, cfg.Gateway.TLSAddress = "", ""
	component, err := gateway.New(cfg.Gateway, gateway.Services{
		Sandboxes: sandboxes, ImageResolver: extended{images, cfg.Environment}, Images: images,
	}, frame)
	if err != nil {
		return nil, errors.Join(err, images.Close(), sandboxes.Close())
	}
	r := &Runner{
		cfg: cfg, images: images, starts: sandboxes.String(), listener: bufconn.Listen(connectionBytes), ended: make(chan error, 1),
	}
	component.Endpoints[0].Listener = r.listener
	ctx, r.stop = context.WithCancel(context.WithoutCancel(ctx)) // [Runner.Close] ends it, after the last evaluation
	go func() {
		life := serve.Config{ShutdownTimeout: stopTimeout}
		r.ended <- serve.Run(ctx, life, frame.Telemetry.Log, frame.Health, component)
	}()
	return r, nil
}

// Sandboxes returns what starts sandboxes and what limits them, for users.
func (r *Runner) Sandboxes() string { return r.starts }

// Dial connects to the runner's gateway.
func (r *Runner) Dial(ctx context.Context) (net.Conn, error) { return r.listener.DialContext(ctx) }

// Close ends the runner, and returns why it had ended before, if it had.
func (r *Runner) Close() error {
	r.stop()
	return errors.Join(<-r.ended, r.images.Close())
}

// extended are images whose functions have a larger environment.
type extended struct {
	*Images
	environment []string
}

// ResolveImage implements the interface of the gateway.
func (e extended) ResolveImage(
	ctx context.Context, req *imageresolverv1.ResolveImageRequest,
) (*imageresolverv1.ResolveImageResponse, error) {
	resolved, err := e.Images.ResolveImage(ctx, req)
	if err != nil || len(e.environment) == 0 {
		return resolved, err
	}
	resolved = proto.CloneOf(resolved) // others may have it too
	resolved.Env = append(resolved.Env, e.environment...)
	return resolved, nil
}
