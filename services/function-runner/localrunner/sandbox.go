// SPDX-License-Identifier: Apache-2.0

package localrunner

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
	"github.com/krm-function-runner/function-runner/services/image-resolver/imageresolver"
)

// SandboxSettings are the settings of sandboxes on this machine.
type SandboxSettings struct {
	// Sandbox is the launcher of sandboxes: `bubblewrap`, `crun`, `runc`, `runsc` or `direct` ([without
	// namespaces](security.md#without-namespaces)), the absolute path of such a program,
	// `auto` (the first launcher that works; the log contains the failures of the rest), or `off`.
	Sandbox string `default:"off"`
	// SandboxStore is the directory with the files of images, which processes may share. The default is
	// `function-runner/images` in `XDG_CACHE_HOME` or `~/.cache`, and for root in `/var/cache`. Every user must be
	// able to enter the directories above root's store. The store contains up to 10 GiB, and each image up to 2 GiB
	// and 300,000 files. The least recently used images are removed first, but never images in use.
	SandboxStore string `split_words:"true"`
}

// Limits of the image store: its maximum size in bytes, and the maximum bytes and files of each image. A full store
// removes unused images. [Images.Prune] can remove them earlier.
const (
	maxStoreBytes = 10 << 30
	maxImageBytes = 2 << 30
	maxImageFiles = 300_000
)

// Limits of a sandbox: the private memory of each process in bytes, and the number of processes and threads. If this
// program runs as root, all bubblewrap sandboxes of a function share the limit maxProcesses.
const (
	maxProcessBytes = 2 << 30
	maxProcesses    = 1024
)

// Check adds an error to checks for each invalid setting.
func (c SandboxSettings) Check(checks *config.Checks) {
	checks.That(c.Launcher().HasLauncher(), "Sandbox", c.Sandbox, gateway.SandboxLaunchers)
	checks.That(c.storeDirectory() != "", "SandboxStore", c.SandboxStore,
		"the path of a directory, since there is no home directory")
}

// Launcher returns the configuration of the launcher of sandboxes.
func (c SandboxSettings) Launcher() gateway.SandboxConfig {
	return gateway.SandboxConfig{Launcher: c.Sandbox, MaxMemoryBytes: maxProcessBytes, MaxProcesses: maxProcesses}
}

// Store returns the settings of the image store.
func (c SandboxSettings) Store() imageresolver.StoreConfig {
	return imageresolver.StoreConfig{
		Dir: c.storeDirectory(), MaxBytes: maxStoreBytes, MaxImageBytes: maxImageBytes, MaxImageFiles: maxImageFiles,
	}
}

var errOff = errors.New("functions have nothing to run in: unset FNR_SANDBOX, which is off")

// TryLaunchers tests that the configured launcher can start sandboxes. If FNR_SANDBOX is auto, it tests all launchers
// in order until a launcher works. After each test, TryLaunchers calls the function tried with the launcher's name and
// the test's error. The error is nil if the launcher works.
func TryLaunchers(ctx context.Context, s Settings, tried func(launcher string, err error)) {
	names := []string{s.SandboxSettings.Sandbox}
	if s.SandboxSettings.Sandbox == auto {
		names = gateway.AllLaunchers()
	}
	frame := servermain.Frame{Telemetry: telemetry.Discard(), Health: new(serve.Health)}
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

// Group returns the ID of the group that must be able to read the image store. If this program runs as root, this is
// the group of the sandboxes' users. Otherwise Group returns zero, because only this program's user reads the store.
func Group() int {
	if os.Getuid() == 0 {
		return gateway.UnprivilegedGroup
	}
	return 0
}

// rootCache is root's cache directory for images. Root cannot use ~/.cache, because root starts sandboxes as other
// users. These users cannot enter root's home directory.
const rootCache = "/var/cache"

// storeDirectory returns the directory of the image store. It is empty if FNR_SANDBOX_STORE is not set and the user
// has no home directory.
func (c SandboxSettings) storeDirectory() string {
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
