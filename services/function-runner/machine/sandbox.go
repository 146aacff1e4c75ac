// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"os"
	"path/filepath"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
	"github.com/krm-function-runner/function-runner/services/image-resolver/imageresolver"
)

// SandboxSettings are the settings of sandboxes on this machine, which need no Kubernetes.
type SandboxSettings struct {
	// Sandbox is what starts sandboxes: auto, off, or a launcher.
	Sandbox string `default:"off"`
	// SandboxStore is the directory in which images are kept; empty is one in the user's cache
	// directory.
	SandboxStore string `split_words:"true"`
	// SandboxMaxBytes bounds what all images take on disk, SandboxMaxImageBytes and
	// SandboxMaxImageFiles each unpacked image.
	SandboxMaxBytes      int64 `split_words:"true" default:"10737418240"`
	SandboxMaxImageBytes int64 `split_words:"true" default:"2147483648"`
	SandboxMaxImageFiles int64 `split_words:"true" default:"300000"`
	// SandboxMaxMemoryBytes bounds the private memory of each process; 0 is any.
	SandboxMaxMemoryBytes int64 `split_words:"true" default:"2147483648"`
	// SandboxMaxProcesses is how many processes and threads a sandbox may have, and with bubblewrap the
	// sandboxes of a function together where this program runs as root.
	SandboxMaxProcesses int64 `split_words:"true" default:"1024"`
}

// Check adds the problems of the settings.
func (c SandboxSettings) Check(checks *config.Checks) {
	checks.That(c.Launcher().HasLauncher(), "Sandbox", c.Sandbox, gateway.SandboxLaunchers)
	checks.That(c.store() != "", "SandboxStore", c.SandboxStore,
		"the path of a directory, since there is no home directory")
	checks.That(c.SandboxMaxImageBytes > 0, "SandboxMaxImageBytes", c.SandboxMaxImageBytes, "more than zero")
	checks.That(c.SandboxMaxBytes >= c.SandboxMaxImageBytes, "SandboxMaxBytes", c.SandboxMaxBytes,
		"as much as FNR_SANDBOX_MAX_IMAGE_BYTES")
	checks.That(c.SandboxMaxImageFiles > 0, "SandboxMaxImageFiles", c.SandboxMaxImageFiles, "more than zero")
	checks.That(c.SandboxMaxMemoryBytes >= 0, "SandboxMaxMemoryBytes", c.SandboxMaxMemoryBytes,
		"a number of bytes, or 0 for any")
	checks.That(c.SandboxMaxProcesses > 0, "SandboxMaxProcesses", c.SandboxMaxProcesses, "1 or more")
}

// Launcher returns the settings of what starts sandboxes.
func (c SandboxSettings) Launcher() gateway.SandboxConfig {
	return gateway.SandboxConfig{
		Launcher: c.Sandbox, MaxMemoryBytes: c.SandboxMaxMemoryBytes, MaxProcesses: c.SandboxMaxProcesses,
	}
}

// Store returns the settings of the store of images.
func (c SandboxSettings) Store() imageresolver.StoreConfig {
	return imageresolver.StoreConfig{
		Dir: c.store(), MaxBytes: c.SandboxMaxBytes,
		MaxImageBytes: c.SandboxMaxImageBytes, MaxImageFiles: c.SandboxMaxImageFiles,
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
