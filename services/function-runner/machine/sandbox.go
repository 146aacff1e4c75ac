// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/program"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
	"github.com/krm-function-runner/function-runner/services/image-resolver/imageresolver"
)

// SandboxSettings are the settings of sandboxes on this machine, which need no Kubernetes.
type SandboxSettings struct {
	// Sandbox is the launcher of sandboxes: `bubblewrap`, `crun`, `runc`, `runsc` or `direct` ([without
	// namespaces](security.md#without-namespaces)), the absolute path of such a program, `auto` (the first launcher that works; the log contains the failures of the rest), or `off`.
	Sandbox string `default:"off"`
	// SandboxStore is the directory with the files of images, which processes may share. If it is empty, it is
	// `function-runner/images` in `XDG_CACHE_HOME` or `~/.cache`, for root in `/var/cache`. Every user must be able
	// to enter the directories above root's store. Images take up to 10 GiB there, and each up to 2 GiB and 300,000
	// files. The least recently used images are removed, never images in use.
	SandboxStore string `split_words:"true"`
}

// What images may take on disk, together and each, and how many files an image may have. [Images.Prune] removes images
// that are not needed.
const (
	maxStoreBytes = 10 << 30
	maxImageBytes = 2 << 30
	maxImageFiles = 300_000
)

// What a sandbox may have: bytes of private memory of each process, and processes and threads. Where this program runs
// as root, the sandboxes of a function by bubblewrap have these processes together.
const (
	maxProcessBytes = 2 << 30
	maxProcesses    = 1024
)

// Check adds the problems of the settings.
func (c SandboxSettings) Check(checks *config.Checks) {
	checks.That(c.Launcher().HasLauncher(), "Sandbox", c.Sandbox, gateway.SandboxLaunchers)
	checks.That(c.store() != "", "SandboxStore", c.SandboxStore,
		"the path of a directory, since there is no home directory")
}

// Launcher returns the settings of what starts sandboxes.
func (c SandboxSettings) Launcher() gateway.SandboxConfig {
	return gateway.SandboxConfig{Launcher: c.Sandbox, MaxMemoryBytes: maxProcessBytes, MaxProcesses: maxProcesses}
}

// Store returns the settings of the store of images.
func (c SandboxSettings) Store() imageresolver.StoreConfig {
	return imageresolver.StoreConfig{
		Dir: c.store(), MaxBytes: maxStoreBytes, MaxImageBytes: maxImageBytes, MaxImageFiles: maxImageFiles,
	}
}

// errOff is the error of a machine whose setting forbids sandboxes.
var errOff = errors.New("functions have nothing to run in: unset FNR_SANDBOX, which is off")

// TryLaunchers starts a sandbox with the launcher of the settings, or with each launcher in the order of auto until one
// works, and calls tried with the result.
func TryLaunchers(ctx context.Context, s Settings, tried func(launcher string, err error)) {
	names := []string{s.SandboxSettings.Sandbox}
	if s.SandboxSettings.Sandbox == auto {
		names = gateway.AllLaunchers()
	}
	frame := program.Frame{Telemetry: telemetry.Discard(), Health: new(serve.Health)}
	for _, name := range names {
		s.Gateway.Sandbox.Launcher = name
		sandboxes, err := gateway.FindSandboxes(ctx, s.Gateway, frame)
		if err == nil && sandboxes == nil {
			err = errOff
		}
		err = errors.Join(err, sandboxes.Close())
		tried(name, err)
		if err == nil {
			return
		}
	}
}

// Group returns the group that has to be able to read images beside the user of this program; 0 for none.
func Group() int {
	if os.Getuid() == 0 {
		return gateway.UnprivilegedGroup
	}
	return 0
}

// rootCache is where programs of root keep what they can get again: sandboxes run as another user, who
// cannot enter root's home directory.
const rootCache = "/var/cache"

// store returns the directory of the store, empty if none is set and there is no home directory.
func (c SandboxSettings) store() string {
	if c.SandboxStore != "" {
		return c.SandboxStore
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	if home, err := os.UserHomeDir(); err == nil && os.Getuid() == 0 && cache == filepath.Join(home, ".cache") {
		cache = rootCache
	}
	return filepath.Join(cache, "function-runner", "images")
}
