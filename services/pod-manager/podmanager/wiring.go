// SPDX-License-Identifier: Apache-2.0

package podmanager

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/krm-function-runner/function-runner/libs/confine"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/program"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/cacheconfig"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/functions"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kube"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kubeclient"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/manager"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// drainDelay is the time in which a stopping pod still accepts calls.
const drainDelay = time.Second

// wrapperEvaluationTime is the default limit of an evaluation in a wrapper server.
const wrapperEvaluationTime = 5 * time.Minute

// minGracePeriod is the minimum time for a deleted pod to finish its evaluations, which have no limit if
// FNR_MAX_EVALUATION_TIME is 0.
const minGracePeriod = 5 * time.Minute

// defaults returns the defaults for gaps of pod templates.
func (c *Config) defaults() podspec.Defaults {
	return podspec.Defaults{
		WrapperImage: c.WrapperServerImage, Launcher: c.launcher(), TerminationGracePeriod: c.gracePeriod(),
	}
}

// gracePeriod returns the time in which a deleted pod may finish its evaluations: more than the longest evaluation,
// because pods are deleted while they are in use.
func (c *Config) gracePeriod() time.Duration {
	return max(minGracePeriod, c.MaxEvaluationTime+podspec.GraceMargin)
}

// readyTimeout limits the time in which a pod with a node becomes ready, unless the function has its own limit. Known
// problems are reported to waiting leases earlier.
const readyTimeout = 5 * time.Minute

// builder returns the builder of pods and Services.
func (c *Config) builder() podspec.Builder {
	return podspec.Builder{
		Namespace: c.Namespace, MaxMessageBytes: c.MaxMessageBytes,
		PullSecret: cmp.Or(c.PullSecret, DefaultPullSecret), AlwaysPullSecret: c.AuthSecretPath != "",
		Args: c.wrapperArgs(), Env: c.wrapperEnv(), Network: c.network(),
	}
}

// ownNamespace returns the namespace of this program: of the pod it runs in, or, with a kubeconfig, the namespace of
// function pods.
func (c *Config) ownNamespace() (string, error) {
	if c.Kubeconfig != "" {
		return c.Namespace, nil
	}
	return kube.OwnNamespace()
}

// templates returns the source of pod templates.
func (c *Config) templates(client kubernetes.Interface, frame program.Frame) (*kube.Templates, error) {
	namespace := ""
	if c.Template != "" {
		var err error
		if namespace, err = c.ownNamespace(); err != nil {
			return nil, fmt.Errorf("set up the pod template: %w", err)
		}
	}
	return kube.NewTemplates(kube.TemplatesConfig{
		Client: client, Namespace: namespace, Name: c.Template, Defaults: c.defaults(),
		LauncherPending: c.chooses(), Telemetry: frame.Telemetry,
	})
}

// functions opens the pod cache configuration, and calls changed with each change.
func (c *Config) functions(changed func(map[string]cacheconfig.Entry), log *slog.Logger) (*functions.File, error) {
	return functions.Open(functions.Config{
		Path: cmp.Or(c.CacheConfig, CacheConfigPath), DefaultImagePrefix: c.DefaultImagePrefix, Log: log, Changed: changed,
	})
}

// cluster returns the configuration of the adapter to Kubernetes.
func (c *Config) cluster(
	client kubernetes.Interface, clock *kubeclient.Clock, templates *kube.Templates, launching *kube.Launching,
	owns func(image string) bool, frame program.Frame,
) kube.Config {
	return kube.Config{
		Client: client, Clock: clock, Namespace: c.Namespace,
		PodIP: c.Endpoint == EndpointPodIP, Builder: c.builder(), Templates: templates, Launching: launching, Owns: owns,
		ScanInterval: c.ScanInterval, Telemetry: frame.Telemetry,
	}
}

// launcher returns the launcher of pods before or without an automatic choice. A user's template contains the
// launcher itself.
func (c *Config) launcher() podspec.Launcher {
	if c.Launcher == LauncherImageVolume && c.Template == "" {
		return podspec.ImageVolume
	}
	return podspec.InitContainer
}

// chooses reports whether the launcher is chosen automatically.
func (c *Config) chooses() bool { return c.Launcher == LauncherAuto && c.Template == "" }

// launching returns the automatic choice of the launcher, or nil if the launcher is configured.
func (c *Config) launching(client kubernetes.Interface, use func(podspec.Launcher), log *slog.Logger) *kube.Launching {
	if !c.chooses() {
		return nil
	}
	return kube.NewLaunching(client, use, log)
}

// wrapperArgs returns the arguments of wrapper servers.
func (c *Config) wrapperArgs() []string {
	args := []string{
		// Leases expire before the pod-manager deletes a pod, so the pod exits after its last evaluation. Only a pod that
		// another client deletes may get calls for a moment.
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

// wrapperEnv returns the variables of wrapper servers, sorted by name.
func (c *Config) wrapperEnv() []corev1.EnvVar {
	vars := make([]corev1.EnvVar, 0, len(c.PodEnv))
	for _, name := range slices.Sorted(maps.Keys(c.PodEnv)) {
		vars = append(vars, corev1.EnvVar{Name: name, Value: c.PodEnv[name]})
	}
	return vars
}

// network returns the images whose functions may use the network. Validate rejects invalid patterns.
func (c *Config) network() imagename.Patterns {
	patterns, err := imagename.ParsePatterns(c.FunctionNetwork)
	if err != nil {
		return nil
	}
	return patterns
}

// settings returns the initial settings of the pools. inProcess is true if callers are in the same process.
func (c *Config) settings(
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

// minPods returns the minimum number of pods of functions in the pod cache configuration.
func (c *Config) minPods() int {
	if c.WarmUp {
		return 1
	}
	return 0
}

// PodEnv selects variables of a process, as KEY=value, for wrapper servers: variables of OpenTelemetry that do not
// identify the process, without credentials and files, which are missing in pods. Functions are programs of other
// users: a template must name further variables for their pods.
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

// ownTelemetry reports whether a variable of OpenTelemetry applies to this process only.
func ownTelemetry(name string) bool {
	if name == "OTEL_SERVICE_NAME" || name == "OTEL_RESOURCE_ATTRIBUTES" {
		return true
	}
	for _, suffix := range []string{"_HEADERS", "_CLIENT_KEY", "_CERTIFICATE", "_CONFIG_FILE"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}
