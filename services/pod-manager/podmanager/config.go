// Package podmanager lends function pods: it will keep a pool of warm pods for each
// function. It has the settings of that service so far, so that what is wrong with
// them is found when a program starts.
package podmanager

import (
	"time"

	"github.com/krm-function-runner/function-runner/libs/config"
)

// Config is the pod-manager's settings.
type Config struct {
	// Namespace is where function pods live.
	Namespace string `default:"porch-fn-system"`
	// WrapperServerImage is the image that brings the wrapper server into pods.
	// Porch's name for its variable works too.
	WrapperServerImage string `envconfig:"WRAPPER_SERVER_IMAGE"`
	// Template is the ConfigMap with the templates of pods and services; empty for
	// the built-in ones.
	Template string
	// TTL is how long an unused pod lives.
	TTL time.Duration `default:"30m"`
	// ScanInterval is the time between two searches for pods to collect.
	ScanInterval time.Duration `split_words:"true" default:"1m"`
	// MaxWaitlistLength is how many evaluations may be on one pod before a further
	// pod is started.
	MaxWaitlistLength int `split_words:"true" default:"2"`
	// MaxPodsPerFunction is how many pods a function may have.
	MaxPodsPerFunction int `split_words:"true" default:"1"`
	// CacheConfig is the file with the functions that get pods at the start.
	CacheConfig string `split_words:"true" default:"/pod-cache-config/pod-cache-config.yaml"`
	// WarmUp says whether they do.
	WarmUp bool `split_words:"true" default:"true"`
	// PullSecret is the name of the pull secret for private registries.
	PullSecret string `split_words:"true" default:"auth-secret"`
}

// Validate checks the settings.
func (c *Config) Validate() error {
	var checks config.Checks
	checks.That(c.Namespace != "", "Namespace", c.Namespace, "the namespace for function pods")
	checks.That(c.WrapperServerImage != "", "WrapperServerImage", c.WrapperServerImage, "the image of the wrapper server, or the pod runtime disabled")
	checks.That(c.TTL > 0, "TTL", c.TTL, "more than zero")
	checks.That(c.ScanInterval > 0, "ScanInterval", c.ScanInterval, "more than zero")
	checks.That(c.MaxWaitlistLength > 0, "MaxWaitlistLength", c.MaxWaitlistLength, "1 or more")
	checks.That(c.MaxPodsPerFunction > 0, "MaxPodsPerFunction", c.MaxPodsPerFunction, "1 or more")
	checks.That(c.PullSecret != "", "PullSecret", c.PullSecret, "the name of a secret")
	return checks.Err()
}
