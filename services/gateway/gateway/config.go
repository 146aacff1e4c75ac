// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/evalserve"
	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/imagename"
)

// Names of the runtimes that execute functions: as local binaries, in sandboxes and in pods.
const (
	RuntimeExec    = "exec"
	RuntimeSandbox = "sandbox"
	RuntimePod     = "pod"
)

// ServiceAccount is the directory where Kubernetes mounts the token of a pod's service account. Programs add it
// to Config.Secrets, so that functions cannot read the token.
const ServiceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// Config configures a gateway. It does not contain settings that all programs share, such as the log level.
type Config struct {
	// Address is the address where callers connect, as `host:port`. `off` closes this port, so that the gateway
	// serves only [callers with identities](#callers-with-identities), at FNR_TLS_ADDRESS.
	Address string `split_words:"true" default:":9445"`
	// TLSAddress is the address of the port for [callers with identities](#callers-with-identities), such as `:9443`.
	// There is no such port if it is empty.
	TLSAddress string `split_words:"true"`
	// Callers are patterns of the SPIFFE IDs that may call at FNR_TLS_ADDRESS. `/*` at the end of a pattern matches
	// all IDs below that path.
	Callers []string `default:"spiffe://function-runner/callers/*"`
	// StatusAddress is the address of the [status page](metrics.md#status-page), as `host:port`. There is no page if
	// it is empty.
	StatusAddress string `split_words:"true"`
	// StatusHosts are the host names by which browsers may call the status page and the other ports, in addition to
	// IP addresses and `localhost`.
	StatusHosts []string `split_words:"true"`
	// MaxMessageBytes limits requests and responses. Set it to the same value for gateway and pod-manager.
	MaxMessageBytes config.Bytes `split_words:"true" default:"6291456"`
	// MemoryBudgetBytes is the memory budget: bytes of requests that are being read, queued or evaluated, with their
	// outputs. Zero means an eighth of the container's memory limit. If the container has no limit, it means 128 MiB
	// or four of the largest requests. A request that does not fit [waits](#memory). A larger request runs alone.
	MemoryBudgetBytes config.Bytes `split_words:"true" default:"0"`
	// LogFunctionOutput is true if stderr and results of failed functions, which may contain secrets, are logged. If
	// false, only image, reason, exit code and signal are logged.
	LogFunctionOutput bool `split_words:"true" default:"false"`
	// MaxEvaluationTime limits an evaluation, [waiting included](#time-and-fair-shares). Zero means no limit.
	MaxEvaluationTime time.Duration `split_words:"true" default:"5m"`
	// MaxConnections is the maximum number of concurrent connections of callers, at most a quarter of them from one
	// address. The gateway closes further connections. Raise it behind a proxy or a service mesh that makes a
	// connection for each caller.
	MaxConnections int `split_words:"true" default:"256"`
	// DefaultImagePrefix is the prefix that is added to image names without a slash. Set it to the same value for gateway,
	// pod-manager and image-resolver.
	DefaultImagePrefix string `split_words:"true" default:"ghcr.io/kptdev/krm-functions-catalog"`
	// DisableRuntimes are the runtimes that the gateway does not use: `exec`, `sandbox`, `pod`.
	DisableRuntimes []string `split_words:"true"`

	// ImageResolver is the URL of the image-resolver, such as `http://host:9449`. If the host has several DNS addresses,
	// such as a headless Service, each address is a replica.
	ImageResolver string `split_words:"true"`
	// PodManager is the URL of the pod-manager, such as `http://name:9448`. If the host has several DNS addresses, each
	// address is a replica. Without a pod-manager, functions run only as local binaries.
	PodManager string `split_words:"true"`

	// FunctionNetwork are patterns of repositories whose functions may use the network, such as `ghcr.io/example/fn-*`.
	// `*` matches any text without a slash, `**` any text. A pattern may contain any of a registry's names, such as
	// `index.docker.io`.
	FunctionNetwork []string `split_words:"true"`
	// Secrets are files and directories that no function may read.
	Secrets []string `ignored:"true"`
	function.Confinement

	Exec    ExecConfig
	Sandbox SandboxConfig `ignored:"true"`
	Pod     PodConfig
	// ResultCache configures the cache of function results.
	ResultCache ResultCacheConfig `split_words:"true"`
	Policy      PolicyConfig
}

// PodConfig configures the pod evaluator.
type PodConfig struct {
	// MaxRetries is the maximum number of retries of an evaluation on other pods after a pod broke.
	MaxRetries int `split_words:"true" default:"2"`
	// IdleTimeout is the time after which an unused connection to a pod is closed.
	IdleTimeout time.Duration `split_words:"true" default:"5m"`
}

// check adds an error to checks for each invalid setting.
func (c PodConfig) check(checks *config.Checks) {
	checks.That(c.MaxRetries >= 0, "Pod.MaxRetries", c.MaxRetries, "0 or more")
	checks.That(c.IdleTimeout > 0, "Pod.IdleTimeout", c.IdleTimeout, "more than zero")
}

// Defaults of [ExecConfig.Queue] and [ExecConfig.PreforkTotal].
const (
	defaultExecQueue    = 1000
	defaultPreforkTotal = 16
)

// ExecConfig configures the exec evaluator, which runs functions as local binaries.
type ExecConfig struct {
	// Config is the [file that maps images to binaries](#the-exec-evaluators-file). Changes to the file apply at once.
	Config string `default:"./config.yaml"`
	// Functions is the directory with the binaries.
	Functions string `default:"./functions"`
	// Queue is the maximum number of evaluations that wait for a process. Zero means 1,000.
	Queue int `ignored:"true"`
	// PreforkTotal is the maximum number of processes started in advance, for all functions together. Zero means 16.
	PreforkTotal int `ignored:"true"`
	function.Settings
}

// check adds an error to checks for each invalid setting.
func (c ExecConfig) check(checks *config.Checks) {
	checks.That(c.Config != "", "Exec.Config", c.Config, "the path of a file")
	checks.That(c.Functions != "", "Exec.Functions", c.Functions, "the path of a directory")
	function.CheckSettings(checks, "Exec.", c.Settings)
}

// Validate checks the settings.
func (c *Config) Validate() error {
	var checks config.Checks
	checks.That(c.Address != "", "Address", c.Address, "host:port")
	if c.StatusAddress != "" {
		_, _, err := net.SplitHostPort(c.StatusAddress)
		checks.That(err == nil, "StatusAddress", c.StatusAddress, "host:port, or empty for no page")
	}
	c.checkIdentities(&checks)
	checks.That(c.MaxEvaluationTime >= 0, "MaxEvaluationTime", c.MaxEvaluationTime, "zero or more")
	checks.That(c.MaxConnections >= 0, "MaxConnections", c.MaxConnections, "1 or more, or 0 for the default")
	checks.ServiceURL("ImageResolver", c.ImageResolver)
	checks.ServiceURL("PodManager", c.PodManager)
	checks.That(imagename.IsPrefix(c.DefaultImagePrefix), "DefaultImagePrefix",
		c.DefaultImagePrefix, imagename.PrefixWanted)
	for _, r := range c.DisableRuntimes {
		checks.That(slices.Contains([]string{RuntimeExec, RuntimeSandbox, RuntimePod}, r), "DisableRuntimes",
			strings.Join(c.DisableRuntimes, ","), "a comma-separated list of exec, sandbox and pod")
	}
	function.CheckMessageBytes(&checks, "MaxMessageBytes", c.MaxMessageBytes)
	enough := c.MemoryBudgetBytes == 0 || c.MemoryBudgetBytes >= c.MaxMessageBytes
	checks.That(enough, "MemoryBudgetBytes", c.MemoryBudgetBytes,
		fmt.Sprintf("as large as the largest request, %d, or 0", c.MaxMessageBytes))
	c.Policy.check(&checks)
	switch {
	case c.Enabled(RuntimeExec):
		c.Exec.check(&checks)
	case c.Enabled(RuntimeSandbox):
		function.CheckSettings(&checks, "Exec.", c.Exec.Settings)
	}
	if c.Enabled(RuntimeExec) || c.Enabled(RuntimeSandbox) {
		function.CheckConfinement(&checks, c.Confinement)
		_, err := imagename.ParsePatterns(c.FunctionNetwork)
		checks.That(err == nil, "FunctionNetwork", strings.Join(c.FunctionNetwork, ","),
			"patterns of repositories, such as ghcr.io/example/fn-*")
	}
	if c.Enabled(RuntimePod) {
		c.Pod.check(&checks)
	}
	c.ResultCache.check(&checks)
	return checks.Err()
}

// Enabled reports whether the gateway may use a runtime, such as [RuntimePod].
func (c *Config) Enabled(runtime string) bool { return !slices.Contains(c.DisableRuntimes, runtime) }

// memoryBudget returns the maximum memory of all requests with their outputs, in bytes. The default depends on the
// container's memory limit, which is read from root, the directory of the container's control group.
func (c *Config) memoryBudget(root string) int64 {
	if c.MemoryBudgetBytes > 0 {
		return int64(c.MemoryBudgetBytes)
	}
	return evalserve.DefaultBytes(root, int(c.MaxMessageBytes))
}
