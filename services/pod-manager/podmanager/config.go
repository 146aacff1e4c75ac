// SPDX-License-Identifier: Apache-2.0

package podmanager

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/confine"
	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

const (
	// launcherAuto is the value of Config.Launcher that lets the pod-manager choose the method of adding the wrapper
	// server to pods.
	launcherAuto = "auto"
	// Values of Config.Endpoint, which selects if gateways reach pods by Services or by the pods' IP addresses. Addresses
	// make cold starts faster, because kube-proxy waits a second between two changes of a node's rules. The pod-manager
	// does not choose by itself: it cannot detect a mesh reliably, and replicas could differ.
	endpointService = "service"
	endpointPodIP   = "pod-ip"
)

const (
	// DefaultPullSecret is the default name of the pull secret. The Roles in our manifests grant access to a Secret of
	// this name.
	DefaultPullSecret = "auth-secret"
	// DefaultMaxWaitlistLength is the default of MaxWaitlistLength, the same as in Porch.
	DefaultMaxWaitlistLength = 2
	// CacheConfigPath is the path where the manifests mount the pod cache configuration.
	CacheConfigPath = "/pod-cache-config/pod-cache-config.yaml"
)

// Config is the pod-manager's settings, without the settings common to all programs.
type Config struct {
	// Address is the address where gateways connect, as `host:port`.
	Address string `split_words:"true" default:":9448"`
	// Callers are the SPIFFE IDs that may call the pod-manager with [mutual TLS](#mutual-tls). `/*` at the end matches all
	// IDs below.
	Callers []string `default:"spiffe://function-runner/gateway"`
	// ImageResolver is the URL of the image-resolver, such as `http://host:9449`. Each DNS address of the host, as for a
	// headless Service, is a replica. It is required.
	ImageResolver string `split_words:"true"`
	// DefaultImagePrefix is the prefix of image names without a slash.
	DefaultImagePrefix string `split_words:"true" default:"ghcr.io/kptdev/krm-functions-catalog"`
	// MaxMessageBytes limits requests and responses of function pods. Set it to the gateway's value.
	MaxMessageBytes config.Bytes `split_words:"true" default:"6291456"`

	// Kubeconfig is the path of a kubeconfig file. It is empty in a cluster.
	Kubeconfig string `split_words:"true"`
	// Namespace is the namespace of function pods.
	Namespace string `default:"porch-fn-system"`

	// WrapperServerImage is the image of the wrapper server, which runs functions in pods. It is required. Porch has a
	// variable of the same name.
	WrapperServerImage string `envconfig:"WRAPPER_SERVER_IMAGE"`
	// PodTLS is true if function pods get identities and serve only the programs in FNR_CALLERS. It has an effect only if
	// the pod-manager has a certificate. Set it to `false` for templates with an older wrapper server or with Porch's
	// wrapper server.
	PodTLS bool `split_words:"true" default:"true"`
	// Template is the ConfigMap with the [template of function pods](function-pods.md), in the pod-manager's own
	// namespace. Changes take effect without a restart. If it is empty, the template is built in.
	Template string
	// Launcher is the method that brings the wrapper server into pods of the built-in template: `init-container`,
	// `image-volume` (nodes need containerd 2.1 or CRI-O 1.33), or `auto`, which uses image volumes from Kubernetes
	// 1.35 on until a pod shows that its node does not support them.
	Launcher string `default:"auto"`
	// Endpoint is the method of reaching pods: `service` (each pod has a DNS name below `svc.cluster.local`, as in Porch
	// and for service meshes) or `pod-ip` (fastest; set by all manifests without `pod-services`).
	Endpoint string `default:"service"`
	// PullSecret is the name of the pull secret, for pods whose registry requires credentials. Empty means auth-secret.
	PullSecret string `ignored:"true"`
	// AuthSecretPath is a docker configuration file with credentials for registries. The pod-manager copies it to the pull
	// secret `auth-secret`, which all pods then use. If it is empty, the pod-manager does not write the pull secret, and
	// only pods whose function's registry requires credentials use it.
	AuthSecretPath string `split_words:"true"`
	// MaxEvaluationTime limits evaluations in pods. Zero means no limit. Set it to the gateway's value.
	MaxEvaluationTime time.Duration `split_words:"true" default:"5m"`
	// FunctionNetwork are patterns of repositories whose functions may use the network in pods, as for the gateway.
	FunctionNetwork []string `split_words:"true"`
	// Confine is the reaction of wrapper servers to a kernel that cannot confine functions, as for the gateway: `require`,
	// `best-effort` or `off`.
	Confine confine.Level `default:"best-effort"`
	// PodEnv contains additional environment variables for wrapper servers, such as the address that receives traces.
	PodEnv map[string]string `ignored:"true"`

	// TTL is the time after which an unused pod is deleted.
	TTL time.Duration `default:"30m"`
	// ScanInterval is the interval of garbage collection, which deletes expired pods.
	ScanInterval time.Duration `split_words:"true" default:"1m"`
	// UnscheduledTimeout is the time for which a pod may wait for a node, for instance from an autoscaler. Callers that
	// wait for the pod then get the error `Unavailable` with the reason.
	UnscheduledTimeout time.Duration `split_words:"true" default:"2m"`
	// MaxWaitlistLength is the maximum number of evaluations per pod, running or waiting, before a further pod is started.
	// Zero means [DefaultMaxWaitlistLength].
	MaxWaitlistLength int `ignored:"true"`
	// MaxPodsPerFunction is the maximum number of pods of a function.
	MaxPodsPerFunction int `split_words:"true" default:"1"`
	// MaxConcurrency is the maximum number of concurrent evaluations in a pod.
	MaxConcurrency int `split_words:"true" default:"8"`
	// MaxQueuePerFunction is the maximum number of queued evaluations of a function.
	MaxQueuePerFunction int `split_words:"true" default:"1000"`

	// CacheConfig is the path of the pod cache configuration. Empty means [CacheConfigPath].
	CacheConfig string `ignored:"true"`
	// WarmUp is true if each function in the [pod cache configuration](#the-pod-cache-configuration) keeps at least one
	// pod.
	WarmUp bool `split_words:"true" default:"true"`
	// Issuer configures the issuer of our programs' certificates, for clusters without another issuer of certificates.
	Issuer IssuerConfig
}

// Validate checks the settings.
func (c *Config) Validate() error {
	var checks config.Checks
	checks.That(c.Address != "", "Address", c.Address, "host:port")
	checks.ServiceURL("ImageResolver", c.ImageResolver)
	_, idErr := mtls.ParsePatterns(c.Callers)
	checks.That(idErr == nil, "Callers", strings.Join(c.Callers, ","), mtls.IDsWanted)
	function.CheckMessageBytes(&checks, "MaxMessageBytes", c.MaxMessageBytes)
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

// checkPods validates the settings for function pods and for connections to them.
func (c *Config) checkPods(checks *config.Checks) {
	isName := func(s string) bool { return len(validation.IsDNS1123Subdomain(s)) == 0 }
	namespace := len(validation.IsDNS1123Label(c.Namespace)) == 0
	checks.That(namespace, "Namespace", c.Namespace, "the namespace for function pods")
	checks.That(c.Template == "" || isName(c.Template), "Template", c.Template, "the name of a ConfigMap, or nothing")
	checks.That(isImage(c.WrapperServerImage), "WrapperServerImage", c.WrapperServerImage,
		"the image of the wrapper server, or the pod runtime disabled")
	launchers := []string{launcherAuto, string(podspec.InitContainer), string(podspec.ImageVolume)}
	checks.That(slices.Contains(launchers, c.Launcher), "Launcher", c.Launcher, "auto, init-container or image-volume")
	endpoints := []string{endpointService, endpointPodIP}
	checks.That(slices.Contains(endpoints, c.Endpoint), "Endpoint", c.Endpoint, "service or pod-ip")
	checks.That(c.PullSecret == "" || isName(c.PullSecret), "PullSecret", c.PullSecret, "the name of a secret")
}

func (c *Config) checkLimits(checks *config.Checks) {
	checks.That(c.TTL > 0, "TTL", c.TTL, "more than zero")
	checks.That(c.ScanInterval > 0, "ScanInterval", c.ScanInterval, "more than zero")
	checks.That(c.UnscheduledTimeout >= 0, "UnscheduledTimeout", c.UnscheduledTimeout, "zero or more")
	checks.That(c.MaxEvaluationTime >= 0, "MaxEvaluationTime", c.MaxEvaluationTime, "zero or more")
	checks.That(c.MaxWaitlistLength >= 0, "MaxWaitlistLength", c.MaxWaitlistLength, "1 or more")
	checks.That(c.MaxPodsPerFunction > 0, "MaxPodsPerFunction", c.MaxPodsPerFunction, "1 or more")
	checks.That(c.MaxConcurrency > 0, "MaxConcurrency", c.MaxConcurrency, "1 or more")
	checks.That(c.MaxQueuePerFunction > 0, "MaxQueuePerFunction", c.MaxQueuePerFunction, "1 or more")
}

func isImage(s string) bool {
	_, err := imagename.Parse(s, "")
	return err == nil
}
