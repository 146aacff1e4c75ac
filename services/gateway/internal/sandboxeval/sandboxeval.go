// SPDX-License-Identifier: Apache-2.0

// Package sandboxeval is the sandbox evaluator: it runs functions of any image in sandboxes of this machine, without a
// container runtime and without Kubernetes.
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
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/admission"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalmetrics"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/resolverclient"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/sandbox"
)

// Images provides the files of images.
type Images interface {
	// Open returns the directory with the files of an image, and pulls the image if necessary. The directory exists
	// until release is called. Open calls phase with a description of each step of the pull.
	Open(ctx context.Context, repository, digest string, phase func(string)) (root string, release func(), err error)
	// WhenFull registers free. If too many images are open, the store calls free, which must close unused images.
	// Only then does it reject an image.
	WhenFull(free func())
}

// Config configures an Evaluator.
type Config struct {
	Resolver resolverclient.Resolver
	Images   Images
	Launcher *sandbox.Launcher
	// Network matches the images whose functions may use the network.
	Network imagename.Patterns
	// Queue is the maximum number of evaluations that wait for a slot.
	Queue int
	// Service configures how functions run. New sets further fields.
	Service function.ServiceConfig
}

// Evaluator is the sandbox evaluator.
type Evaluator struct {
	cfg     Config
	service *function.Service
	took    func(ctx context.Context, phase string, took time.Duration)
	kept    keeper
}

// New returns an evaluator. Callers must run Maintain while they use it.
func New(cfg Config) (*Evaluator, error) {
	phases, err := evalmetrics.NewPhases(cfg.Service.Telemetry.Meters)
	if err != nil {
		return nil, err
	}
	e := &Evaluator{cfg: cfg, took: phases.Took, kept: keeper{images: map[string]*openImage{}}}
	cfg.Service.Sandboxed = !cfg.Launcher.Direct()
	cfg.Service.OwnFiles = true
	cfg.Service.Wording = function.WrapperWording
	cfg.Service.Took = phases.Took
	cfg.Service.Admit = admission.New(admission.ForEvaluations(cfg.Service.Slots(), cfg.Queue)).Admit
	if e.service, err = function.NewService(cfg.Service); err != nil {
		return nil, fmt.Errorf("set up the sandbox evaluator: %w", err)
	}
	cfg.Images.WhenFull(func() { e.kept.closeIdle(e.service.Forget) })
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
		return evaluation.Response{}, e.service.NotStarted(req.Given, startErr)
	}
	req.Measured.Attempt()
	req.Measured.Enter("queue")
	req.Measured.WaitsNow(evaluation.AllSlotsTaken)
	req.Measured.On(evalmetrics.Leased{Image: req.Image.Repository + "@" + resolved.GetDigest()})
	result, err := e.service.Evaluate(ctx, function.Evaluation{
		Image: req.Given, Command: command,
		ResourceList: req.ResourceList, Caller: req.Caller, Limit: req.Limit,
		RunLimit: func() function.TimeLimit {
			req.Measured.Enter("run")
			return req.Limit
		},
	})
	if err != nil {
		return evaluation.Response{}, err
	}
	return evaluation.Response{
		ResourceList: result.ResourceList, Log: result.Log, Results: result.Results, Digest: resolved.GetDigest(),
	}, nil
}

// openImage resolves and opens the image of a request. It returns the open image and the resolver's answer.
func (e *Evaluator) openImage(
	ctx context.Context, req evaluation.Request,
) (*imageRef, *imageresolverv1.ResolveImageResponse, error) {
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
	e.took(ctx, "pull", time.Since(pulling))
	if err != nil {
		return nil, nil, notOpened(ctx, req.Given, start, doing, err)
	}
	return root, resolved, nil
}

// notOpened returns the error for an image that cannot be opened. doing describes the failed step. The class of the
// error is never NotFound, because callers would then continue with another runtime.
func notOpened(ctx context.Context, image string, start time.Time, doing string, err error) error {
	if ctx.Err() != nil {
		return function.Interrupted(cmp.Or(function.ContextErr(ctx), err), image, time.Since(start), doing)
	}
	err = fmt.Errorf("unable to get the sandbox for %s: %w", image, err)
	switch fault.Of(err) {
	case fault.NotFound, fault.Unimplemented, fault.DeadlineExceeded, fault.Canceled:
		return fault.New(fault.Unavailable, "%w", err)
	default:
		return err
	}
}

// Maintain runs background tasks until ctx ends.
func (e *Evaluator) Maintain(ctx context.Context) error {
	keeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.kept.run(keeping)
	}()
	err := e.service.Maintain(ctx)
	stop() // images close only after the last spare process has exited
	<-done
	return errors.Join(err, e.cfg.Launcher.Close())
}
