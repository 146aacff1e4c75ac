// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/krm-function-runner/function-runner/fnctl/internal/local"
	"github.com/krm-function-runner/function-runner/fnctl/internal/ui"
)

// containerNames returns the container runtimes that --local tries, in order. FNR_SANDBOX may name a runtime.
// Otherwise, Linux uses sandboxes, and other systems use KPT_FN_RUNTIME or any supported runtime.
func (e Environment) containerNames(system string) []string {
	if name := e.lookUp("FNR_SANDBOX"); slices.Contains(local.ContainerRuntimes, name) {
		return []string{name}
	}
	switch {
	case system == "linux":
		return nil
	case e.containerRuntime() != "":
		return []string{e.containerRuntime()}
	default:
		return local.ContainerRuntimes
	}
}

// containerRuntime returns the container runtime that the user has chosen as in kpt. It is empty by default.
func (e Environment) containerRuntime() string { return strings.ToLower(e.lookUp("KPT_FN_RUNTIME")) }

// useContainers makes the evaluator e run images in containers, with the first installed runtime in names.
func (f *gatewayFlags) useContainers(e *evaluator, env Environment, names []string, progress *ui.Progress) error {
	if f.trace || f.cache {
		return errors.New("takes --trace and --cache with a function runner or sandboxes, not with containers")
	}
	containers, err := local.FindContainers(names...)
	switch {
	case err != nil && !f.local: // fnctl doc
		return fmt.Errorf("%w, or use --local", err)
	case err != nil:
		return fmt.Errorf("%w, or give the address of a function runner with --address or FNCTL_ADDRESS", err)
	}
	containers.Evaluator = e.Evaluator
	containers.Offline = f.offline
	containers.Variables = f.environment
	containers.Help = f.help
	containers.Network = env.checkNetwork
	e.Images = containers
	if f.phases {
		progress.Line("One container of %s for each function", containers.Program)
	}
	return nil
}
