// SPDX-License-Identifier: Apache-2.0

package podmanager

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/krm-function-runner/function-runner/libs/confine"
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1/imageresolverv1connect"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/resolverclient"
	"github.com/krm-function-runner/function-runner/libs/rpcclient"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/cacheconfig"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/functionconfig"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kube"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kubeclient"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/manager"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pullsecret"
)

// drainDelay is the time for which the wrapper server of a stopping pod still accepts calls.
const drainDelay = time.Second

// wrapperEvaluationTime is the time limit for evaluations in wrapper servers without the argument
// --max-evaluation-time.
const wrapperEvaluationTime = 5 * time.Minute

// minGracePeriod is the minimum grace period of pods. It also applies if FNR_MAX_EVALUATION_TIME is 0, because
// evaluations then have no limit.
const minGracePeriod = 5 * time.Minute

// defaults returns the values for fields that templates of function pods leave unset.
func (c *Config) defaults() podspec.Defaults {
	return podspec.Defaults{
		WrapperImage: c.WrapperServerImage, Launcher: c.launcher(), TerminationGracePeriod: c.gracePeriod(),
	}
}

// gracePeriod returns the time within which a deleted pod may complete its evaluations. It is longer than the time
// limit of an evaluation, because a pod may be deleted while it is in use.
func (c *Config) gracePeriod() time.Duration {
	return max(minGracePeriod, c.MaxEvaluationTime+podspec.GraceMargin)
}

// readyTimeout is the time within which a pod with a node must become ready, unless the function sets its own limit. If
// the kubelet reports a problem, callers that wait for the pod get the error earlier.
const readyTimeout = 5 * time.Minute

// builder returns the builder of function pods and their Services.
func (c *Config) builder() podspec.Builder {
	return podspec.Builder{
		Namespace: c.Namespace, MaxMessageBytes: int(c.MaxMessageBytes),
		PullSecret: cmp.Or(c.PullSecret, DefaultPullSecret), AlwaysPullSecret: c.AuthSecretPath != "",
		Args: c.wrapperArgs(), Env: c.wrapperEnv(), Network: c.networkImages(),
	}
}

// ownNamespace returns the namespace of this program's own pod. If a kubeconfig is set, the program runs outside
// the cluster, and ownNamespace returns the namespace of function pods instead.
func (c *Config) ownNamespace() (string, error) {
	if c.Kubeconfig != "" {
		return c.Namespace, nil
	}
	return kube.OwnNamespace()
}

// templates returns the source of the template of function pods.
func (c *Config) templates(client kubernetes.Interface, frame servermain.Frame) (*kube.Templates, error) {
	namespace := ""
	if c.Template != "" {
		var err error
		if namespace, err = c.ownNamespace(); err != nil {
			return nil, fmt.Errorf("set up the pod template: %w", err)
		}
	}
	return kube.NewTemplates(kube.TemplatesConfig{
		Client: client, Namespace: namespace, Name: c.Template, Defaults: c.defaults(),
		LauncherPending: c.choosesLauncher(), Telemetry: frame.Telemetry,
	}), nil
}

// openCacheConfig opens the pod cache configuration. After each change, it passes the settings to the callback.
func (c *Config) openCacheConfig(
	changed func(map[string]cacheconfig.Entry), log *slog.Logger,
) (*cacheconfig.File, error) {
	return cacheconfig.Open(cacheconfig.Config{
		Path: cmp.Or(c.CacheConfig, CacheConfigPath), DefaultImagePrefix: c.DefaultImagePrefix, Log: log, Changed: changed,
	})
}

// cluster returns the settings of package kube, through which the manager manages pods in Kubernetes.
func (c *Config) cluster(
	client kubernetes.Interface, clock *kubeclient.Clock, templates *kube.Templates, launching *kube.Launching,
	owns func(image string) bool, send func(pool.Event), frame servermain.Frame,
) kube.Config {
	return kube.Config{
		Client: client, Clock: clock, Namespace: c.Namespace, Send: send,
		PodIP: c.Endpoint == endpointPodIP, Builder: c.builder(), Templates: templates, Launching: launching, Owns: owns,
		ScanInterval: c.ScanInterval, Telemetry: frame.Telemetry,
	}
}

// launcher returns the method of adding the wrapper server to pods of the built-in template. If FNR_LAUNCHER is auto,
// this is an init container until the first automatic choice. The method has no effect on users' templates.
func (c *Config) launcher() podspec.Launcher {
	if c.Launcher == string(podspec.ImageVolume) && c.Template == "" {
		return podspec.ImageVolume
	}
	return podspec.InitContainer
}

// choosesLauncher reports whether the pod-manager must automatically choose the method of adding the wrapper server to
// pods.
func (c *Config) choosesLauncher() bool { return c.Launcher == launcherAuto && c.Template == "" }

// launching returns the component that chooses a launcher: an image volume or an init container. It passes each choice
// to use. It is nil if FNR_LAUNCHER or a user's template determines the launcher.
func (c *Config) launching(client kubernetes.Interface, use func(podspec.Launcher), log *slog.Logger) *kube.Launching {
	if !c.choosesLauncher() {
		return nil
	}
	return kube.NewLaunching(client, use, log)
}

// wrapperArgs returns the arguments of the wrapper servers in function pods.
func (c *Config) wrapperArgs() []string {
	args := []string{
		// The drain delay can be short, because a stopping pod normally gets no calls: the pod-manager deletes a pod only
		// after its last lease has ended. Only a pod that another client deletes may still receive calls for a moment.
		"--serve-drain-delay=" + drainDelay.String(),
	}
	if c.MaxEvaluationTime != wrapperEvaluationTime {
		args = append(args, "--max-evaluation-time="+c.MaxEvaluationTime.String())
	}
	if c.Confine != "" && c.Confine != confine.BestEffort {
		args = append(args, "--confine="+string(c.Confine))
	}
	return args
}

// wrapperEnv returns the environment variables of the wrapper servers in function pods, sorted by name.
func (c *Config) wrapperEnv() []corev1.EnvVar {
	vars := make([]corev1.EnvVar, 0, len(c.PodEnv))
	for _, name := range slices.Sorted(maps.Keys(c.PodEnv)) {
		vars = append(vars, corev1.EnvVar{Name: name, Value: c.PodEnv[name]})
	}
	return vars
}

// networkImages returns patterns of the images whose functions may use the network. Validate has rejected invalid
// patterns.
func (c *Config) networkImages() imagename.Patterns {
	patterns, _ := imagename.ParsePatterns(c.FunctionNetwork)
	return patterns
}

// initialSettings returns the manager's settings at the start. inProcess is true if callers are in the same process.
func (c *Config) initialSettings(
	template podspec.Template, functions map[string]cacheconfig.Entry, inProcess bool,
) manager.Settings {
	return manager.Settings{
		Template: template, Builder: c.builder(), Functions: functions, MinPods: c.minPods(),
		Pools: pool.Config{
			ScanInterval: c.ScanInterval, SchedulingTimeout: c.UnscheduledTimeout, InProcess: inProcess,
		},
		Defaults: pool.Limits{
			MaxPods: c.MaxPodsPerFunction, MaxConcurrency: c.MaxConcurrency,
			MaxWaitlistLength: cmp.Or(c.MaxWaitlistLength, DefaultMaxWaitlistLength),
			MaxQueue:          c.MaxQueuePerFunction, TTL: c.TTL, ReadyTimeout: readyTimeout,
		},
	}
}

// minPods returns the default minimum number of pods for functions in the pod cache configuration.
func (c *Config) minPods() int {
	if c.WarmUp {
		return 1
	}
	return 0
}

// PodEnv returns the variables in environ that are also set for wrapper servers in function pods. These are the
// variables of OpenTelemetry, except variables that identify the process, contain credentials, or name files, which are
// missing in pods. All other variables are excluded, because functions, which other users write, must not read them. A
// template may add variables.
func PodEnv(environ []string) map[string]string {
	env := make(map[string]string)
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, "OTEL_") && !ownTelemetry(name) {
			env[name] = value
		}
	}
	return env
}

// ownTelemetry reports whether a variable of OpenTelemetry applies only to this process, and not to wrapper servers.
func ownTelemetry(name string) bool {
	suffixes := []string{"_HEADERS", "_CLIENT_KEY", "_CERTIFICATE", "_CONFIG_FILE"}
	return name == "OTEL_SERVICE_NAME" || name == "OTEL_RESOURCE_ATTRIBUTES" ||
		slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(name, suffix) })
}

// connect returns a client of the image-resolver service. The client stays open until the process exits.
func (c *Config) connect(frame servermain.Frame) (*resolverclient.Client, error) {
	if c.ImageResolver == "" {
		return nil, fault.New(fault.Invalid, "no image-resolver is named: set FNR_IMAGE_RESOLVER")
	}
	client, err := rpcclient.New(c.ImageResolver, frame.Identity.ClientOfSibling("image-resolver"), frame.Telemetry)
	if err != nil {
		return nil, err
	}
	client.Options = append(client.Options, client.Balanced())
	resolver := imageresolverv1connect.NewImageResolverServiceClient(client.HTTP, c.ImageResolver, client.Options...)
	return resolverclient.New(resolver, client.Hangs, frame.Telemetry.Meters), nil
}

// settingsUpdates is a function that changes a running manager's settings. Each method replaces a single setting.
type settingsUpdates func(change func(*manager.Settings))

func (u settingsUpdates) setFunctions(f map[string]cacheconfig.Entry) {
	u(func(s *manager.Settings) { s.Functions = f })
}

func (u settingsUpdates) setConfigs(c *functionconfig.Set) {
	u(func(s *manager.Settings) { s.Configs = *c })
}

func (u settingsUpdates) setTemplate(t podspec.Template) {
	u(func(s *manager.Settings) { s.Template = t })
}

func (u settingsUpdates) setTLS(t *podspec.TLS) { u(func(s *manager.Settings) { s.TLS = t }) }

// pullSecret returns a cluster that delays pods until the pull secret that they require exists. The returned task keeps
// the Secret up to date. Without a docker configuration file, the cluster is unchanged and the task does nothing.
func (c *Config) pullSecret(
	cluster manager.Cluster, client kubernetes.Interface, send func(pool.Event), frame servermain.Frame,
) (manager.Cluster, serve.Task) {
	if c.AuthSecretPath == "" {
		return cluster, func(ctx context.Context) error { <-ctx.Done(); return nil }
	}
	keeper := pullsecret.New(pullsecret.Config{
		Path: c.AuthSecretPath, Secrets: client.CoreV1().Secrets(c.Namespace),
		Namespace: c.Namespace, Name: cmp.Or(c.PullSecret, DefaultPullSecret), CheckInterval: c.ScanInterval,
		Log: frame.Telemetry.Log, Meter: frame.Telemetry.Meters.Meter("pod-manager/pullsecret"),
	})
	return pullsecret.Guard{Cluster: cluster, Keeper: keeper, Send: send}, keeper.Run
}
