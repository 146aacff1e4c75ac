// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/krm-function-runner/function-runner/fnctl/internal/command"
	"github.com/krm-function-runner/function-runner/fnctl/internal/local"
	"github.com/krm-function-runner/function-runner/fnctl/internal/ui"
	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/imagename"
)

// ContainerNames returns the container runtimes to try for --local, in order of preference. The argument system
// is a value of runtime.GOOS. If FNR_SANDBOX names a runtime, ContainerNames returns only this runtime. Otherwise, it
// returns none on Linux, where fnctl uses sandboxes. On other systems, it returns the runtime in KPT_FN_RUNTIME, or all
// runtimes if this variable is not set.
func ContainerNames(system string, env command.Environment) []string {
	if name := env.LookUp("FNR_SANDBOX"); slices.Contains(local.ContainerRuntimes, name) {
		return []string{name}
	}
	switch {
	case system == "linux":
		return nil
	case ContainerRuntime(env) != "":
		return []string{ContainerRuntime(env)}
	default:
		return local.ContainerRuntimes
	}
}

// ContainerRuntime returns the container runtime that the user selected for kpt. It is empty by default.
func ContainerRuntime(env command.Environment) string {
	return strings.ToLower(env.LookUp("KPT_FN_RUNTIME"))
}

// CheckNetwork returns an error unless the setting FNR_FUNCTION_NETWORK permits this image to use the network.
func CheckNetwork(env command.Environment, image string) error {
	allowed, err := imagename.ParsePatterns(config.SplitList(env.LookUp("FNR_FUNCTION_NETWORK")))
	if err != nil {
		return fmt.Errorf("FNR_FUNCTION_NETWORK: %w", err)
	}
	name, err := imagename.Parse(image, imagename.DefaultPrefix)
	if err != nil {
		return err
	}
	if !allowed.Match(name) {
		return fmt.Errorf("cannot give %s the network: FNR_FUNCTION_NETWORK does not name its repository", image)
	}
	return nil
}

// useContainers makes an evaluator run images in containers, with the first runtime in names that is installed.
func (f *Flags) useContainers(e *Evaluator, env command.Environment, names []string, progress *ui.Progress) error {
	if f.Trace || f.cache {
		return errors.New("takes --trace and --cache with a function runner or sandboxes, not with containers")
	}
	containers, err := local.FindContainers(names...)
	switch {
	case err != nil && !f.Local: // only fnctl doc uses containers without --local
		return fmt.Errorf("%w, or use --local", err)
	case err != nil:
		return fmt.Errorf("%w, or give the address of a function runner with --address or FNCTL_ADDRESS", err)
	case f.Offline && containers.Runtime == local.AppleContainer:
		return fmt.Errorf("%s cannot run offline: it has no option to forbid pulls (use %s)",
			containers.Runtime, strings.Join(local.Dockers, ", "))
	}
	containers.MaxOutputBytes = e.MaxOutputBytes
	// The runtime gets fnctl's own environment, not the variables of functions. Otherwise, a function's DOCKER_HOST or
	// LD_PRELOAD would affect the runtime itself.
	containers.Environment = env.Environ
	containers.Offline = f.Offline
	// Omit a bare KEY that the environment does not contain. Otherwise, podman would interpret a KEY such as AWS_* as a
	// pattern, and pass all variables that match it.
	containers.Variables = slices.DeleteFunc(slices.Clone(f.Environment), func(variable string) bool {
		return len(env.Variables([]string{variable})) == 0
	})
	containers.Arguments = f.Arguments
	containers.Network = func(image string) error { return CheckNetwork(env, image) }
	e.Images = containers
	if f.Phases {
		progress.Line("One container of %s for each function", containers.Program)
	}
	return nil
}
