// SPDX-License-Identifier: Apache-2.0

// Package localrunner runs functions from container images on this machine, for the command-line tool fnctl. It
// contains a gateway, an image-resolver and a launcher of sandboxes in one process, and requires no port, no Kubernetes
// and no daemon. The server function-runner uses only this package's settings of sandboxes.
//
// fnctl calls the gateway by gRPC through a connection in memory, so that texts, limits and exit codes are the same as
// with a remote gateway. The package contains no pod-manager, because client-go would double the size of fnctl.
package localrunner

import (
	"context"
	"errors"
	"net"
	"time"

	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
)

// Runner runs functions in sandboxes on this machine. Callers in this process connect to it by [Runner.Dial].
type Runner struct {
	cfg      Config
	images   *Images
	starts   string // description of the launcher for users
	listener *bufconn.Listener
	stop     context.CancelFunc
	ended    chan error
}

// Config configures a Runner.
type Config struct {
	Settings
	// Offline is true if the runner must not call registries. It then uses only images in the image store.
	Offline bool
	// Environment contains variables for all functions, as KEY=value, in addition to the environment of their images.
	Environment []string
	// Arguments replace the Cmd of images, as with docker run. Functions may then write any text instead of a
	// ResourceList, such as their help. If it is empty, functions get the Cmd of their images.
	Arguments []string
}

const (
	// connectionBytes is the buffer size, in bytes, of an in-memory connection between [Runner.Dial] and the gateway.
	connectionBytes = 1 << 20
	// stopTimeout limits the time for which [Runner.Close] waits for running evaluations. The time can be short, because
	// their callers have already left.
	stopTimeout = 10 * time.Second
)

// Start starts a runner. It returns an error if no sandbox can be started on this machine. Callers must close the
// runner.
func Start(ctx context.Context, cfg Config) (*Runner, error) {
	frame := servermain.Frame{Telemetry: telemetry.Discard(), Health: new(serve.Health)}
	sandboxes, err := gateway.FindSandboxes(ctx, cfg.Gateway, frame)
	if err == nil && sandboxes == nil {
		err = errOff
	}
	if err != nil {
		return nil, err
	}
	images, err := OpenImages(ctx, cfg.Settings, cfg.Offline)
	if err != nil && sandboxes.Direct() { // "direct" needs no group, and setting one may be forbidden
		images, err = openImages(ctx, cfg.Settings, cfg.Offline, 0)
	}
	if err != nil {
		return nil, errors.Join(err, sandboxes.Close())
	}
	// Listen on no ports, even if environment variables for a server configure ports.
	cfg.Gateway.StatusAddress, cfg.Gateway.TLSAddress = "", ""
	cfg.Gateway.Sandbox.AnyOutput = len(cfg.Arguments) > 0
	component, err := gateway.New(cfg.Gateway, gateway.Services{
		Sandboxes: sandboxes, ImageResolver: extendedImages{images, cfg}, Images: images,
	}, frame)
	if err != nil {
		return nil, errors.Join(err, images.Close(), sandboxes.Close())
	}
	r := &Runner{
		cfg: cfg, images: images, starts: sandboxes.String(),
		listener: bufconn.Listen(connectionBytes), ended: make(chan error, 1),
	}
	component.Endpoints[0].Listener = r.listener
	ctx, r.stop = context.WithCancel(context.WithoutCancel(ctx)) // canceled only by [Runner.Close]
	go func() {
		life := serve.Config{ShutdownTimeout: stopTimeout}
		r.ended <- serve.Run(ctx, life, frame.Telemetry.Log, frame.Health, component)
	}()
	return r, nil
}

// Sandboxes returns a description of the launcher of sandboxes for users, such as the path of bubblewrap.
func (r *Runner) Sandboxes() string { return r.starts }

// Dial connects to the runner's gateway.
func (r *Runner) Dial(ctx context.Context) (net.Conn, error) { return r.listener.DialContext(ctx) }

// Close stops the runner. If the runner has already stopped because of an error, Close returns this error.
func (r *Runner) Close() error {
	r.stop()
	return errors.Join(<-r.ended, r.images.Close())
}

// extendedImages is an image-resolver that adds [Config.Environment] to the environment of each image, and
// replaces the image's Cmd by [Config.Arguments].
type extendedImages struct {
	*Images
	cfg Config
}

// ResolveImage implements the gateway's interface for resolving image names.
func (e extendedImages) ResolveImage(
	ctx context.Context, req *imageresolverv1.ResolveImageRequest,
) (*imageresolverv1.ResolveImageResponse, error) {
	resolved, err := e.Images.ResolveImage(ctx, req)
	if err != nil || (len(e.cfg.Environment) == 0 && len(e.cfg.Arguments) == 0) {
		return resolved, err
	}
	resolved = proto.CloneOf(resolved) // the original is in the resolver's cache
	resolved.Env = append(resolved.Env, e.cfg.Environment...)
	if len(e.cfg.Arguments) > 0 {
		resolved.Command = append(resolved.GetEntrypoint(), e.cfg.Arguments...)
	}
	return resolved, nil
}
