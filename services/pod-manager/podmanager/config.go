// SPDX-License-Identifier: Apache-2.0

package podmanager

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/confine"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/mtls"
)

// Ways to reach a pod.
const (
	EndpointService = "service"
	EndpointPodIP   = "pod-ip"
)

// Launchers: how the wrapper server gets into a pod.
const (
	LauncherAuto          = "auto"
	LauncherInitContainer = "init-container"
	LauncherImageVolume   = "image-volume"
)

// Config is the pod-manager's settings, without the settings common to all programs.
type Config struct {
	// Address is where gateways connect, as host:port.
	Address string `split_words:"true" default:":9448"`
	// Callers are patterns of the SPIFFE IDs that may call, if this program has a certificate.
	Callers []string `default:"spiffe://function-runner/gateway"`
	// ImageResolver is where the image-resolver is, as http://host:port or
	// https://host:port.
	ImageResolver string `split_words:"true"`
	// DefaultImagePrefix is where image names without a slash are looked up.
	DefaultImagePrefix string `split_words:"true" default:"ghcr.io/kptdev/krm-functions-catalog"`
	// MaxMessageBytes bounds what pods take and give.
	MaxMessageBytes int `split_words:"true" default:"6291456"`

	// Kubeconfig is the path of the kubeconfig file; empty inside of a cluster.
	Kubeconfig string `split_words:"true"`
	// Namespace is where function pods live.
	Namespace string `default:"porch-fn-system"`

	// WrapperServerImage is the image that brings the wrapper server into pods.
	// Porch's name for its variable works too.
	WrapperServerImage string `envconfig:"WRAPPER_SERVER_IMAGE"`
	// PodTLS has function pods prove who they are, and accept who may lease them only, if this program has a
	// certificate. Their wrapper server has to be one of this version or a later one.
	PodTLS bool `split_words:"true" default:"true"`
	// Template is the ConfigMap with the templates of pods and services; empty for
	// the built-in ones.
	Template string
	// Launcher is how the wrapper server gets into pods made from the built-in
	// template: auto, init-container or image-volume. Auto is image volumes where the
	// Kubernetes API has them, until a pod shows that its node does not.
	Launcher string `default:"auto"`
	// Endpoint is how pods are reached: service or pod-ip.
	Endpoint string `default:"service"`
	// PullSecret is the name of the pull secret for private registries.
	PullSecret string `split_words:"true" default:"auth-secret"`
	// EnablePrivateRegistries is whether the pod-manager keeps the pull secret: a copy of
	// AuthSecretPath in the pods' namespace. Otherwise it does not touch it.
	EnablePrivateRegistries bool `split_words:"true"`
	// AuthSecretPath is a docker configuration file with credentials. It is followed.
	AuthSecretPath string `split_words:"true" default:"/var/tmp/config-secret/.dockerconfigjson"`
	// MaxEvaluationTime is how long an evaluation may take in a pod, unless the function has
	// a setting of its own; 0 is any time.
	MaxEvaluationTime time.Duration `split_words:"true" default:"5m"`
	// FunctionNetwork are patterns of the repositories of images whose functions may use the
	// network.
	FunctionNetwork []string `split_words:"true"`
	// Confine is how wrapper servers confine functions: require, best-effort or off.
	Confine confine.Level `default:"best-effort"`
	// PodEnv are variables that wrapper servers get, besides the ones that this program
	// sets: where to send traces, for instance.
	PodEnv map[string]string `ignored:"true"`

	// TTL is how long an unused pod lives.
	TTL time.Duration `default:"30m"`
	// ScanInterval is the time between two searches for pods to collect.
	ScanInterval time.Duration `split_words:"true" default:"1m"`
	// ReadyTimeout is how long a pod may take to become ready. What keeps it from
	// that is reported to waiting leases as soon as it is known; this bounds unknown causes.
	ReadyTimeout time.Duration `split_words:"true" default:"5m"`
	// UnscheduledTimeout is how long a pod may be without a node before its waiting leases fail: an autoscaler may add
	// a node. The time to become ready begins when the pod has a node.
	UnscheduledTimeout time.Duration `split_words:"true" default:"2m"`
	// MaxWaitlistLength is how many evaluations may be on one pod before a further
	// pod is started.
	MaxWaitlistLength int `split_words:"true" default:"2"`
	// MaxPodsPerFunction is how many pods a function may have.
	MaxPodsPerFunction int `split_words:"true" default:"1"`
	// MaxConcurrency is how many evaluations run in a pod at a time.
	MaxConcurrency int `split_words:"true" default:"8"`
	// MaxQueuePerFunction is how many evaluations of a function may wait.
	MaxQueuePerFunction int `split_words:"true" default:"1000"`
	// MaxQueue is how many evaluations may wait in all.
	MaxQueue int `split_words:"true" default:"10000"`
	// MaxPods is how many function pods there may be in the namespace, including pods of
	// other replicas and pods that are being deleted; 0 for any number.
	MaxPods int `split_words:"true" default:"0"`

	// CacheConfig is the file that gives functions settings of their own, and a minimum
	// of pods.
	CacheConfig string `split_words:"true" default:"/pod-cache-config/pod-cache-config.yaml"`
	// WarmUp is whether each of these functions keeps one pod at least.
	WarmUp bool `split_words:"true" default:"true"`
	// Issuer issues the certificates of our programs, where nothing else does.
	Issuer IssuerConfig
}

// Validate checks the settings.
func (c *Config) Validate() error {
	var checks config.Checks
	checks.That(c.Address != "", "Address", c.Address, "host:port")
	checks.ServiceURL("ImageResolver", c.ImageResolver)
	_, idErr := mtls.ParsePatterns(c.Callers)
	checks.That(idErr == nil, "Callers", strings.Join(c.Callers, ","), mtls.IDsWanted)
	checks.That(c.MaxMessageBytes > 0, "MaxMessageBytes", c.MaxMessageBytes, "1 or more")
	prefix := c.DefaultImagePrefix
	checks.That(imagename.IsPrefix(prefix), "DefaultImagePrefix", prefix, imagename.PrefixWanted)
	_, err := imagename.ParsePatterns(c.FunctionNetwork)
	checks.That(err == nil, "FunctionNetwork", strings.Join(c.FunctionNetwork, ","),
		"patterns of repositories, such as ghcr.io/example/fn-*")
	c.Confine.Check(&checks, "Confine")
	c.Issuer.check(&checks)
	c.checkPods(&checks)
	c.checkLimits(&checks)
	return checks.Err()
}

// checkPods checks how pods are made and reached.
func (c *Config) checkPods(checks *config.Checks) {
	isName := func(s string) bool { return len(validation.IsDNS1123Subdomain(s)) == 0 }
	namespace := len(validation.IsDNS1123Label(c.Namespace)) == 0
	checks.That(namespace, "Namespace", c.Namespace, "the namespace for function pods")
	checks.That(c.Template == "" || isName(c.Template), "Template", c.Template, "the name of a ConfigMap, or nothing")
	checks.That(isImage(c.WrapperServerImage), "WrapperServerImage", c.WrapperServerImage,
		"the image of the wrapper server, or the pod runtime disabled")
	launchers := []string{LauncherAuto, LauncherInitContainer, LauncherImageVolume}
	checks.That(slices.Contains(launchers, c.Launcher), "Launcher", c.Launcher, "auto, init-container or image-volume")
	endpoints := []string{EndpointService, EndpointPodIP}
	checks.That(slices.Contains(endpoints, c.Endpoint), "Endpoint", c.Endpoint, "service or pod-ip")
	checks.That(isName(c.PullSecret), "PullSecret", c.PullSecret, "the name of a secret")
	checks.That(!c.EnablePrivateRegistries || c.AuthSecretPath != "", "AuthSecretPath", c.AuthSecretPath,
		"the path of a docker configuration file")
}

// checkLimits checks times and numbers.
func (c *Config) checkLimits(checks *config.Checks) {
	checks.That(c.TTL > 0, "TTL", c.TTL, "more than zero")
	checks.That(c.ScanInterval > 0, "ScanInterval", c.ScanInterval, "more than zero")
	checks.That(c.ReadyTimeout > 0, "ReadyTimeout", c.ReadyTimeout, "more than zero")
	checks.That(c.UnscheduledTimeout >= 0, "UnscheduledTimeout", c.UnscheduledTimeout, "zero or more")
	checks.That(c.MaxEvaluationTime >= 0, "MaxEvaluationTime", c.MaxEvaluationTime, "zero or more")
	checks.That(c.MaxWaitlistLength > 0, "MaxWaitlistLength", c.MaxWaitlistLength, "1 or more")
	checks.That(c.MaxPodsPerFunction > 0, "MaxPodsPerFunction", c.MaxPodsPerFunction, "1 or more")
	checks.That(c.MaxConcurrency > 0, "MaxConcurrency", c.MaxConcurrency, "1 or more")
	checks.That(c.MaxQueuePerFunction > 0, "MaxQueuePerFunction", c.MaxQueuePerFunction, "1 or more")
	checks.That(c.MaxQueue > 0, "MaxQueue", c.MaxQueue, "1 or more")
	checks.That(c.MaxPods >= 0, "MaxPods", c.MaxPods, "0 or more")
}

// isImage reports whether s is the name of an image.
func isImage(s string) bool {
	_, err := imagename.Parse(s, "")
	return err == nil
}
