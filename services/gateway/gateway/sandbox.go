// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"

	"github.com/krm-function-runner/function-runner/libs/confine"
	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/sandbox"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/sandboxeval"
)

// UnprivilegedGroup is the group of sandboxes if this program runs as root. This group must be able to read the image
// store.
const UnprivilegedGroup = sandbox.Unprivileged

// SandboxConfig configures the sandbox evaluator. Only programs with an image store (function-runner, fnctl) set and
// validate it.
type SandboxConfig struct {
	// Launcher is the value of FNR_SANDBOX. Sandboxes are off if it is empty.
	Launcher string
	// Required is true if FNR_SANDBOX=auto must find a launcher. Otherwise it is no error if no launcher works.
	Required bool
	// MaxMemoryBytes limits the private memory of each process, and MaxProcesses the processes of a sandbox. If this
	// program runs as root, all bubblewrap sandboxes of a function share the limit MaxProcesses.
	MaxMemoryBytes, MaxProcesses int64
}

// SandboxLaunchers lists the valid values of Launcher for users.
const SandboxLaunchers = sandbox.Names

// AllLaunchers returns the names of the launchers in the order in which auto tries them.
func AllLaunchers() []string { return sandbox.All() }

// HasLauncher reports whether Launcher is in [SandboxLaunchers].
func (c SandboxConfig) HasLauncher() bool { return sandbox.Check(c.Launcher) }

// Sandboxes starts functions in sandboxes of this machine. A gateway closes its launcher itself.
type Sandboxes = sandbox.Launcher

// FindSandboxes returns the launcher of sandboxes. It returns nil if sandboxes are off, or if FNR_SANDBOX is auto and
// no launcher works. A launcher that is configured by name and does not work is an error.
func FindSandboxes(ctx context.Context, cfg Config, frame servermain.Frame) (*Sandboxes, error) {
	if !cfg.Enabled(RuntimeSandbox) {
		return nil, nil //nolint:nilnil // nil starts nothing
	}
	return sandbox.Find(ctx, sandbox.Config{
		Launcher: cfg.Sandbox.Launcher, Required: cfg.Sandbox.Required, MaxMemory: cfg.Sandbox.MaxMemoryBytes,
		MaxTemp: cfg.MaxTempBytes, MaxProcesses: cfg.Sandbox.MaxProcesses, Log: frame.Telemetry.Log,
		// The launcher gets the settings of Go's runtime here, because crun and runc add no variables to a function's
		// environment.
		Env: function.WithGo(nil, cfg.Sandbox.MaxMemoryBytes),
	})
}

// newSandbox returns the sandbox evaluator. Callers must run the evaluator's Maintain.
func newSandbox(cfg Config, services Services, frame servermain.Frame) (*sandboxeval.Evaluator, error) {
	network, err := imagename.ParsePatterns(cfg.FunctionNetwork)
	if err != nil {
		return nil, err
	}
	return sandboxeval.New(sandboxeval.Config{
		Resolver: services.ImageResolver, Images: services.Images, Launcher: services.Sandboxes, Network: network,
		Queue: cmp.Or(cfg.Exec.Queue, defaultExecQueue),
		Service: function.ServiceConfig{
			Program:  "gateway",
			Settings: cfg.Exec.Settings,
			Confinement: function.Confinement{ // applies only to the launcher direct
				Confine: confine.Require, MaxTempBytes: cfg.MaxTempBytes,
			},
			MaxMessageBytes: cfg.MaxMessageBytes,
			PreforkTotal:    cmp.Or(cfg.Exec.PreforkTotal, defaultPreforkTotal),
			Telemetry:       frame.Telemetry,
		},
	})
}
