// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"sync"

	"github.com/krm-function-runner/function-runner/fnctl/internal/client"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	"github.com/krm-function-runner/function-runner/fnctl/internal/runner"
	"github.com/krm-function-runner/function-runner/fnctl/internal/ui"
)

// localImages evaluates images on this machine, and shows what evaluations wait for.
type localImages struct {
	*client.Gateway
	runner runner.Runner

	mu       sync.Mutex
	progress *ui.Progress // nil while no evaluation may show anything
	shown    *ui.Progress // nil if nothing is to be shown
}

// start starts a function runner in this process.
func (f *gatewayFlags) start(ctx context.Context, progress *ui.Progress) (*localImages, error) {
	images := &localImages{}
	if f.phases {
		images.shown = progress
	}
	var err error
	images.runner, err = runner.Start(ctx, runner.Config{
		Offline: f.offline, MaxMessageBytes: f.maxMessage(localMaxMessageBytes), Environment: f.environment,
		Progress: images.waiting,
	})
	if err != nil {
		return nil, err
	}
	if f.phases {
		progress.Line("Sandboxes by %s", images.runner.Sandboxes())
	}
	images.Gateway, err = client.New(client.Config{
		Dial: images.runner.Dial, InProcess: true, MaxMessageBytes: f.maxMessage(localMaxMessageBytes),
	})
	if err != nil {
		return nil, errors.Join(err, images.runner.Close())
	}
	return images, nil
}

// Evaluate implements pipeline.Evaluator. It shows nothing after it returns.
func (l *localImages) Evaluate(ctx context.Context, req pipeline.Request) (pipeline.Response, error) {
	l.show(l.shown)
	defer l.show(nil)
	return l.Gateway.Evaluate(ctx, req)
}

func (l *localImages) show(on *ui.Progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.progress = on
}

// waiting shows what the evaluation waits for.
func (l *localImages) waiting(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.progress != nil {
		l.progress.Waiting(what)
	}
}

func (l *localImages) close() error {
	l.Close()
	return l.runner.Close()
}
