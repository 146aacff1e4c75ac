// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	"github.com/krm-function-runner/function-runner/libs/confine"
	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/program"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/sandbox"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/sandboxeval"
)

// UnprivilegedGroup is the group that has to be able to read images where this program runs as root:
// sandboxes have its rights then.
const UnprivilegedGroup = sandbox.Unprivileged

// SandboxConfig is the settings of the sandbox evaluator, which programs set that have images on disk, and check.
type SandboxConfig struct {
	// Launcher is what FNR_SANDBOX may be; empty is off.
	Launcher string
	// Required makes it an error that auto finds no launcher.
	Required bool
	// MaxMemoryBytes bounds the private memory of each process, and MaxProcesses how many a sandbox has, with
	// bubblewrap the sandboxes of a function together where this program is root.
	MaxMemoryBytes, MaxProcesses int64
}

// SandboxLaunchers are what Launcher may be, as users read it.
const SandboxLaunchers = sandbox.Names

// AllLaunchers returns the names of the launchers in the order in which auto tries them.
func AllLaunchers() []string { return sandbox.All() }

// HasLauncher reports whether Launcher is one of [SandboxLaunchers].
func (c SandboxConfig) HasLauncher() bool { return sandbox.Check(c.Launcher) }

// Sandboxes starts functions in sandboxes of this machine. Nil starts none.
type Sandboxes struct{ launcher *sandbox.Launcher }

// FindSandboxes returns what starts sandboxes, nil if there is none, or none is to be used. With a
// launcher that was chosen by name, it is an error if that does not work.
func FindSandboxes(ctx context.Context, cfg Config, frame program.Frame) (*Sandboxes, error) {
	if !cfg.Enabled(RuntimeSandbox) {
		return nil, nil //nolint:nilnil // nil starts nothing
	}
	launcher, err := sandbox.Find(ctx, sandbox.Config{
		Launcher: cfg.Sandbox.Launcher, Required: cfg.Sandbox.Required, MaxMemory: cfg.Sandbox.MaxMemoryBytes,
		MaxTemp: cfg.MaxTempBytes, MaxProcesses: cfg.Sandbox.MaxProcesses, Log: frame.Telemetry.Log,
		// crun and runc pass on nothing of their own.
		Env: function.WithGo(nil, cfg.Sandbox.MaxMemoryBytes),
	})
	if launcher == nil || err != nil {
		return nil, err
	}
	return &Sandboxes{launcher: launcher}, nil
}

// String returns what starts sandboxes, for users.
func (s *Sandboxes) String() string { return s.launcher.String() }

// Direct reports whether functions run in place, as the user of this program.
func (s *Sandboxes) Direct() bool { return s.launcher.Direct() }

// Close frees what sandboxes have that no gateway was made with. A gateway frees it itself.
func (s *Sandboxes) Close() error {
	if s == nil {
		return nil
	}
	return s.launcher.Close()
}

// newSandbox returns the sandbox evaluator, whose Maintain has to run.
func newSandbox(cfg Config, services Services, frame program.Frame) (*sandboxeval.Evaluator, error) {
	network, err := imagename.ParsePatterns(cfg.FunctionNetwork)
	if err != nil {
		return nil, err
	}
	return sandboxeval.New(sandboxeval.Config{
		Resolver: services.ImageResolver, Images: services.Images, Launcher: services.Sandboxes.launcher, Network: network,
		Queue: cfg.Exec.Queue,
		Service: function.ServiceConfig{
			Program:  "gateway",
			Settings: cfg.Exec.Settings,
			Confinement: function.Confinement{ // of the launcher direct
				Confine: confine.Require, MaxTempBytes: cfg.MaxTempBytes, MaxTempFiles: cfg.MaxTempFiles,
			},
			MaxMessageBytes: cfg.MaxMessageBytes,
			PreforkTotal:    cfg.Exec.PreforkTotal,
			Telemetry:       frame.Telemetry,
		},
	})
}
