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

// UnprivilegedGroup is the group ID of sandboxed processes if this program runs as root. The group must be able to read
// the files of stored images.
const UnprivilegedGroup = sandbox.Unprivileged

// SandboxConfig configures the evaluator that runs functions in sandboxes. Only function-runner and fnctl set and
// validate it, because only these programs store the files of images.
type SandboxConfig struct {
	// Launcher selects the program that starts sandboxes, such as bubblewrap. It is the value of the setting
	// FNR_SANDBOX. If it is empty, functions do not run in sandboxes.
	Launcher string
	// Required makes the program fail at its start if FNR_SANDBOX is auto and no launcher works. If Required is false, the
	// program then runs without sandboxes.
	Required bool
	// MaxMemoryBytes limits the private memory of each process, and MaxProcesses the number of processes of a sandbox.
	// If this program runs as root, all bubblewrap sandboxes of a function share the limit MaxProcesses.
	MaxMemoryBytes, MaxProcesses int64
	// AnyOutput is true if functions may write any text instead of a ResourceList, such as their help.
	AnyOutput bool
}

// SandboxLaunchers lists the valid values of the setting FNR_SANDBOX, for error messages and help texts.
const SandboxLaunchers = sandbox.Names

// AllLaunchers returns the names of all launchers of sandboxes, in the order in which FNR_SANDBOX=auto tries them.
func AllLaunchers() []string { return sandbox.All() }

// HasLauncher reports whether Launcher is a valid value of the setting FNR_SANDBOX.
func (c SandboxConfig) HasLauncher() bool { return sandbox.Check(c.Launcher) }

// Sandboxes starts functions in sandboxes on this machine. A gateway closes its Sandboxes when it stops.
type Sandboxes = sandbox.Launcher

// FindSandboxes returns a launcher that can start sandboxes. If sandboxes are off, it returns nil and no error. If no
// launcher works, FindSandboxes returns an error. However, if FNR_SANDBOX is auto and Required is false, the gateway
// can run without sandboxes. FindSandboxes then returns nil and no error.
func FindSandboxes(ctx context.Context, cfg Config, frame servermain.Frame) (*Sandboxes, error) {
	if !cfg.Enabled(RuntimeSandbox) {
		return nil, nil //nolint:nilnil // nil starts nothing
	}
	return sandbox.Find(ctx, sandbox.Config{
		Launcher: cfg.Sandbox.Launcher, Required: cfg.Sandbox.Required, MaxMemory: cfg.Sandbox.MaxMemoryBytes,
		MaxTemp: int64(cfg.MaxTempBytes), MaxProcesses: cfg.Sandbox.MaxProcesses, Log: frame.Telemetry.Log,
		// Env contains the variables of Go's runtime, such as GOMAXPROCS. The launcher must set them, because a function in
		// crun or runc inherits no variables from this program.
		Env: function.WithGo(nil, cfg.Sandbox.MaxMemoryBytes),
	})
}

// newSandbox returns the evaluator for sandboxes. Callers must run its method Maintain in the background.
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
			Confinement: function.Confinement{ // used only by the launcher "direct"
				Confine: confine.Require, MaxTempBytes: cfg.MaxTempBytes,
			},
			MaxMessageBytes: int(cfg.MaxMessageBytes),
			AnyOutput:       cfg.Sandbox.AnyOutput,
			PreforkTotal:    cmp.Or(cfg.Exec.PreforkTotal, defaultPreforkTotal),
			Telemetry:       frame.Telemetry,
		},
	})
}
