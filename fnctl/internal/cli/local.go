// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"

	"github.com/krm-function-runner/function-runner/fnctl/internal/client"
	"github.com/krm-function-runner/function-runner/fnctl/internal/runner"
	"github.com/krm-function-runner/function-runner/fnctl/internal/ui"
)

// localImages evaluates images on this machine.
type localImages struct {
	*client.Gateway
	runner runner.Runner
}

// start starts a function runner in this process.
func (f *gatewayFlags) start(ctx context.Context, progress *ui.Progress) (*localImages, error) {
	images := &localImages{}
	var err error
	images.runner, err = runner.Start(ctx, runner.Config{
		Offline: f.offline, MaxMessageBytes: f.maxMessage(localMaxMessageBytes), Environment: f.environment,
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

func (l *localImages) close() error {
	l.Close()
	return l.runner.Close()
}
