// SPDX-License-Identifier: Apache-2.0

// Package sandboxeval is the sandbox evaluator. It pulls the images of functions and runs them in sandboxes on this
// machine, without a container runtime and without Kubernetes.
package sandboxeval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/function"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1/imageresolverv1connect"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalmetrics"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/sandbox"
)

// Images provides the files of images.
type Images interface {
	// Open pulls an image if necessary, and returns the directory with its files. The files exist until release is called.
	// Open calls the function phase with a description of each step of the pull, for waiting users.
	Open(ctx context.Context, repository, digest string, phase func(string)) (root string, release func(), err error)
	// WhenFull registers the function free, which must close unused images. The store calls free if the files of too many
	// images are in use. If this does not help, the store rejects the next image.
	WhenFull(free func())
}

// Config configures an Evaluator.
type Config struct {
	Resolver imageresolverv1connect.ImageResolverServiceClient
	Images   Images
	Launcher *sandbox.Launcher
	// Network matches the images whose functions may use the network.
	Network imagename.Patterns
	// Queue is the maximum number of evaluations that wait for a process.
	Queue int
	// Service configures the execution of functions. Callers must leave Sandboxed, OwnFiles and Wording empty: New
	// sets them.
	Service function.ServiceConfig
}

// Evaluator is the sandbox evaluator.
type Evaluator struct {
	cfg   Config
	local *evaluation.Local
	kept  keeper
}

// New returns an evaluator. Callers must run the method Maintain in the background while they use the evaluator.
func New(cfg Config) (*Evaluator, error) {
	cfg.Service.Sandboxed = !cfg.Launcher.Direct()
	cfg.Service.OwnFiles = true
	cfg.Service.Wording = function.WrapperWording
	local, err := evaluation.NewLocal(cfg.Service, cfg.Queue)
	if err != nil {
		return nil, fmt.Errorf("set up the sandbox evaluator: %w", err)
	}
	e := &Evaluator{cfg: cfg, local: local, kept: keeper{images: map[string]*openImage{}}}
	cfg.Images.WhenFull(func() { e.kept.closeIdle(local.Forget) })
	return e, nil
}

// Name implements evaluation.Evaluator.
func (e *Evaluator) Name() string { return "sandbox" }

// Evaluate implements evaluation.Evaluator.
func (e *Evaluator) Evaluate(ctx context.Context, req evaluation.Request) (evaluation.Response, error) {
	image, resolved, err := e.openImage(ctx, req)
	if err != nil {
		return evaluation.Response{}, err
	}
	defer image.releaseImage()
	command, startErr := image.commandFor(run{
		name:     path.Base(req.Image.Repository) + nameEnd(resolved.GetDigest()),
		resolved: resolved, network: e.cfg.Network.Match(req.Image),
	}, e.cfg.Launcher.Command)
	if startErr != nil {
		return evaluation.Response{}, e.local.NotStarted(req.Given, startErr)
	}
	req.Measured.On(evalmetrics.Leased{Image: req.Image.Repository + "@" + resolved.GetDigest()})
	resp, err := e.local.Evaluate(ctx, req, command, function.TimeLimit{})
	if err != nil {
		return evaluation.Response{}, err
	}
	resp.Digest = resolved.GetDigest()
	return resp, nil
}

// openImage resolves the image of a request to its digest, and pulls the image if necessary. It returns the open image,
// and the image-resolver's answer, which contains the image's command and environment.
func (e *Evaluator) openImage(
	ctx context.Context, req evaluation.Request,
) (*openImage, *imageresolverv1.ResolveImageResponse, error) {
	ctx, cancel := req.Limit.Context(ctx)
	defer cancel()
	start, doing := time.Now(), "looking up the image"
	resolved, err := e.cfg.Resolver.ResolveImage(ctx, &imageresolverv1.ResolveImageRequest{Image: req.Image.String()})
	req.Measured.Resolving(time.Since(start))
	if err == nil && len(resolved.GetCommand()) == 0 {
		err = fault.New(fault.Precondition, "the image has nothing to run")
	}
	if err != nil {
		return nil, nil, notOpened(ctx, req.Given, start, doing, err)
	}
	pulling := time.Now()
	req.Measured.Enter("pull")
	root, err := e.kept.openImage(resolved.GetDigest(), func() (string, func(), error) {
		return e.cfg.Images.Open(ctx, req.Image.Repository, resolved.GetDigest(), func(phase string) {
			doing = phase
			req.Measured.Waits(phase)
		})
	})
	req.Measured.Took(ctx, "pull", time.Since(pulling))
	if err != nil {
		return nil, nil, notOpened(ctx, req.Given, start, doing, err)
	}
	return root, resolved, nil
}

// notOpened returns the error for an image that could not be resolved or pulled. The argument doing describes the
// failed step, such as "looking up the image". The error never has the class fault.NotFound. With that class, the
// gateway would conclude that sandboxes do not serve the image, and would try another runtime.
func notOpened(ctx context.Context, image string, start time.Time, doing string, err error) error {
	if ctx.Err() != nil {
		return function.Interrupted(cmp.Or(function.ContextErr(ctx), err), image, time.Since(start), doing)
	}
	err = fmt.Errorf(function.SandboxPrefix+"%w", image, err)
	switch fault.Of(err) {
	case fault.NotFound, fault.Unimplemented, fault.DeadlineExceeded, fault.Canceled:
		return fault.New(fault.Unavailable, "%w", err)
	default:
		return err
	}
}

// Maintain starts processes of functions in advance and closes unused images, until ctx ends. Then it stops all
// processes and closes the launcher.
func (e *Evaluator) Maintain(ctx context.Context) error {
	keeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.kept.run(keeping)
	}()
	err := e.local.Maintain(ctx)
	stop() // spare processes have exited, so their images can be closed
	<-done
	return errors.Join(err, e.cfg.Launcher.Close())
}
