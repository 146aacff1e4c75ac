// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/krm-function-runner/function-runner/fnctl/internal/client"
	"github.com/krm-function-runner/function-runner/fnctl/internal/local"
	"github.com/krm-function-runner/function-runner/fnctl/internal/runner"
	"github.com/krm-function-runner/function-runner/fnctl/internal/ui"
)

// containerNames returns the candidates for the container runtime of --local. FNR_SANDBOX may name the runtime on
// every system. Otherwise, the result is empty on Linux, where functions run in sandboxes. On other systems it is the
// runtime in KPT_FN_RUNTIME, or else every supported runtime.
func (e Environment) containerNames(system string) []string {
	if name := e.lookUp("FNR_SANDBOX"); slices.Contains(local.ContainerRuntimes, name) {
		return []string{name}
	}
	switch {
	case system == "linux":
		return nil
	case e.ContainerRuntime != "":
		return []string{strings.ToLower(e.ContainerRuntime)}
	default:
		return local.ContainerRuntimes
	}
}

// lookUp returns the value of an environment variable. It is empty if the variable is not set.
func (e Environment) lookUp(name string) string {
	for _, variable := range slices.Backward(e.Environ) {
		if value, ok := strings.CutPrefix(variable, name+"="); ok {
			return value
		}
	}
	return ""
}

// useContainers configures e to run images in containers.
func (f *gatewayFlags) useContainers(e *evaluator, env Environment, names []string, progress *ui.Progress) error {
	if f.trace || f.cache {
		return errors.New("takes --trace and --cache with a function runner or sandboxes, not with containers")
	}
	containers, err := local.FindContainers(names...)
	if err != nil {
		return err
	}
	containers.Evaluator = e.Evaluator
	containers.Offline = f.offline
	containers.Variables = f.environment
	containers.Network = env.checkNetwork
	e.Images = containers
	e.close = func() error { return nil }
	if f.phases {
		progress.Line("One container of %s for each function", containers.Program)
	}
	return nil
}

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
