// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/membudget"
)

// The runtimes, which are evaluators by their names.
const (
	RuntimeExec    = "exec"
	RuntimeSandbox = "sandbox"
	RuntimePod     = "pod"
)

// ServiceAccount is the directory in which Kubernetes mounts the token of a pod's service account.
const ServiceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// Config is the gateway's own settings. Settings that every program has are not in it.
type Config struct {
	// Address is where callers connect, as host:port.
	Address string `split_words:"true" default:":9445"`
	// TLSAddress is where callers connect that show a client certificate, as host:port. There is no such port
	// if it is empty.
	TLSAddress string `split_words:"true"`
	// RequireIdentity disables the port for callers without a certificate.
	RequireIdentity bool `split_words:"true"`
	// Callers are patterns of the SPIFFE IDs whose certificates TLSAddress accepts.
	Callers []string `default:"spiffe://function-runner/callers/*"`
	// StatusAddress is where browsers get the status page, as host:port; empty for no page.
	StatusAddress string `split_words:"true"`
	// StatusHosts are host names by which browsers may ask for the status page, besides IP addresses and localhost.
	StatusHosts []string `split_words:"true"`
	// MaxMessageBytes bounds requests and responses.
	MaxMessageBytes int `split_words:"true" default:"6291456"`
	// MemoryBudgetBytes is the memory budget: it bounds the requests that are read, queued or
	// evaluated at a time, together with their outputs; 0 is an eighth of the container's memory limit,
	// or, without one, 128 MiB or four of the largest requests. While a request is decoded
	// there are two copies of it.
	MemoryBudgetBytes int `split_words:"true" default:"0"`
	// MemoryBudgetWait is how long a request may be queued for the memory budget.
	MemoryBudgetWait time.Duration `split_words:"true" default:"5m"`
	// LogFunctionOutput puts into the log what functions that failed wrote to stderr and in
	// their results. It may be secret.
	LogFunctionOutput bool `split_words:"true" default:"false"`
	// MaxLogRate is how many evaluations that succeeded, and how many that failed, are logged in a second.
	// The next line counts the evaluations that were not logged.
	MaxLogRate float64 `split_words:"true" default:"10"`
	// MaxEvaluationTime is how long an evaluation may take from when its request was read,
	// waiting included; 0 is any time. A caller's shorter deadline comes first.
	MaxEvaluationTime time.Duration `split_words:"true" default:"5m"`
	// MaxConnectionAge is how old a connection of a caller becomes, give or take a
	// tenth, before the caller is asked to make another one, which may lead to another
	// replica; 0 is any age.
	MaxConnectionAge time.Duration `split_words:"true" default:"5m"`
	// MaxConnections bounds the connections at a time, and MaxConnectionsPerPeer those from
	// one address, which may be that of a proxy with many callers behind it.
	MaxConnections        int `split_words:"true" default:"256"`
	MaxConnectionsPerPeer int `split_words:"true" default:"64"`
	// DefaultImagePrefix is where image names without a slash are looked up.
	DefaultImagePrefix string `split_words:"true" default:"ghcr.io/kptdev/krm-functions-catalog"`
	// DisableRuntimes are the runtimes not to use: exec, sandbox, pod.
	DisableRuntimes []string `split_words:"true"`

	// ImageResolver is where the image-resolver is, as http://host:port or
	// https://host:port; empty if there is none.
	ImageResolver string `split_words:"true"`
	// PodManager is where the pod-manager is, likewise: a name with an address for
	// each replica. Without it functions run as local binaries only.
	PodManager string `split_words:"true"`

	// FunctionNetwork are patterns of the repositories of images whose functions may use the
	// network, as local binaries.
	FunctionNetwork []string `split_words:"true"`
	// Secrets are files and directories that no function may read.
	Secrets []string `ignored:"true"`
	function.Confinement

	Exec    ExecConfig
	Sandbox SandboxConfig `ignored:"true"`
	Pod     PodConfig
	// ResultCache remembers what functions returned.
	ResultCache ResultCacheConfig `split_words:"true"`
	Policy      PolicyConfig
}

// PodConfig is the settings of the pod evaluator.
type PodConfig struct {
	// MaxRetries is how many further pods an evaluation may try after one broke.
	MaxRetries int `split_words:"true" default:"2"`
	// ConnectTimeout is how long a new pod may take until there is a connection.
	ConnectTimeout time.Duration `split_words:"true" default:"5s"`
	// IdleTimeout is how long a connection to a pod is kept without use.
	IdleTimeout time.Duration `split_words:"true" default:"5m"`
	// MaxIdleConnections is how many connections are kept without use.
	MaxIdleConnections int `split_words:"true" default:"1000"`
}

// check adds the problems of the settings.
func (c PodConfig) check(checks *config.Checks) {
	checks.That(c.MaxRetries >= 0, "Pod.MaxRetries", c.MaxRetries, "0 or more")
	checks.That(c.ConnectTimeout > 0, "Pod.ConnectTimeout", c.ConnectTimeout, "more than zero")
	checks.That(c.IdleTimeout > 0, "Pod.IdleTimeout", c.IdleTimeout, "more than zero")
	checks.That(c.MaxIdleConnections >= 0, "Pod.MaxIdleConnections", c.MaxIdleConnections, "0 or more")
}

// ExecConfig is the settings of the exec evaluator.
type ExecConfig struct {
	// Config is the file that maps images to binaries.
	Config string `default:"./config.yaml"`
	// Functions is the directory with the binaries.
	Functions string `default:"./functions"`
	// Queue is how many evaluations may wait for their turn.
	Queue int `default:"1000"`
	// PreforkTotal is how many spare processes all functions have; 0 is none.
	PreforkTotal int `split_words:"true" default:"16"`
	function.Settings
}

// check adds the problems of the settings.
func (c ExecConfig) check(checks *config.Checks) {
	checks.That(c.Config != "", "Exec.Config", c.Config, "the path of a file")
	checks.That(c.Functions != "", "Exec.Functions", c.Functions, "the path of a directory")
	checks.That(c.Queue >= 0, "Exec.Queue", c.Queue, "0 or more")
	checks.That(c.PreforkTotal >= 0, "Exec.PreforkTotal", c.PreforkTotal, "0 or more")
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
	checks.That(c.MaxConnectionAge >= 0, "MaxConnectionAge", c.MaxConnectionAge, "zero or more")
	checks.That(c.MaxConnections >= 0, "MaxConnections", c.MaxConnections, "1 or more, or 0 for the default")
	checks.That(c.MaxConnectionsPerPeer >= 0, "MaxConnectionsPerPeer", c.MaxConnectionsPerPeer,
		"1 or more, or 0 for the default")
	checks.ServiceURL("ImageResolver", c.ImageResolver)
	checks.ServiceURL("PodManager", c.PodManager)
	checks.That(imagename.IsPrefix(c.DefaultImagePrefix), "DefaultImagePrefix",
		c.DefaultImagePrefix, imagename.PrefixWanted)
	for _, r := range c.DisableRuntimes {
		checks.That(slices.Contains([]string{RuntimeExec, RuntimeSandbox, RuntimePod}, r), "DisableRuntimes",
			strings.Join(c.DisableRuntimes, ","), "a comma-separated list of exec, sandbox and pod")
	}
	function.Limits{MessageBytes: c.MaxMessageBytes}.Check(&checks, "MaxMessageBytes")
	enough := c.MemoryBudgetBytes == 0 || c.MemoryBudgetBytes >= c.MaxMessageBytes
	checks.That(enough, "MemoryBudgetBytes", c.MemoryBudgetBytes,
		fmt.Sprintf("as large as the largest request, %d, or 0", c.MaxMessageBytes))
	checks.That(c.MaxLogRate >= 0 && c.MaxLogRate <= 1e6, "MaxLogRate", c.MaxLogRate, "0 to 1000000 lines a second")
	checks.That(c.MemoryBudgetWait >= 0, "MemoryBudgetWait", c.MemoryBudgetWait, "zero or more")
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

// Enabled reports whether the gateway uses a runtime.
func (c *Config) Enabled(runtime string) bool { return !slices.Contains(c.DisableRuntimes, runtime) }

// memoryBudget is how many bytes of requests are held at a time in the container whose
// control group is at root.
func (c *Config) memoryBudget(root string) int64 {
	if c.MemoryBudgetBytes > 0 {
		return int64(c.MemoryBudgetBytes)
	}
	return membudget.Default(root, c.MaxMessageBytes)
}
