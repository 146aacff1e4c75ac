// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"maps"

	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/cacheconfig"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/functionconfig"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podname"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// Settings contains the settings that may change while the manager runs. Callers must not modify its maps, because
// copies of the Settings share them.
type Settings struct {
	// Template is the template of new pods.
	Template podspec.Template
	// TLS configures the certificates that prove the pods' identities. It is nil if pods have no certificates.
	TLS *podspec.TLS
	// Builder builds pods.
	Builder podspec.Builder
	// Pools configures the pools, except the limits, pod names and template version, which poolConfig adds.
	Pools pool.Config
	// Defaults contains the limits of functions that do not set their own limits.
	Defaults pool.Limits
	// Functions contains the settings of single functions from the pod cache configuration. The key of an image is its
	// [imagename.Name.Key].
	Functions map[string]cacheconfig.Entry
	// Configs contains the settings of FunctionConfig objects. They replace the settings in Functions for the same image.
	Configs functionconfig.Set
	// MinPods is the default minimum number of pods for each entry in Functions. Zero disables all minimum numbers of
	// pods, even the numbers in Functions and Configs.
	MinPods int
}

// listedPods returns the configured minimum numbers of pods by image. It omits images without a minimum.
func (s Settings) listedPods() map[string]int {
	listed := make(map[string]int)
	for _, entry := range s.Functions {
		name, err := imagename.Parse(entry.Image, "")
		if _, configured := s.Configs.Pod(name); err == nil && !configured {
			listed[entry.Image] = s.MinPods
			if entry.MinPods != nil {
				listed[entry.Image] = *entry.MinPods
			}
		}
	}
	maps.Copy(listed, s.Configs.MinPods())
	if s.MinPods <= 0 {
		for image := range listed {
			listed[image] = 0
		}
	}
	maps.DeleteFunc(listed, func(_ string, pods int) bool { return pods == 0 })
	return listed
}

// poolConfig returns Pools, completed with the template version, the limits and the pod names.
func (s Settings) poolConfig() pool.Config {
	config := s.Pools
	config.Template = s.Template.Version()
	config.Limits = s.limitsOf
	config.PodName = func(f pool.Function, slot int, predecessor string) string {
		return podname.PodName(f.Reference, f.Digest, slot, predecessor)
	}
	config.PodID = func(f pool.Function, slot int) string { return podname.PodID(f.Reference, f.Digest, slot) }
	return config
}

// limitsOf returns the limits of a function. Limits that are not set for the function come from Defaults.
func (s Settings) limitsOf(f pool.Function) pool.Limits {
	limits, entry := s.Defaults, s.entryOf(f)
	override(&limits.TTL, entry.TTL)
	override(&limits.ReadyTimeout, entry.ReadyTimeout)
	override(&limits.MaxPods, entry.MaxPods)
	override(&limits.MaxWaitlistLength, entry.MaxWaitlistLength)
	override(&limits.MaxConcurrency, entry.MaxConcurrency)
	override(&limits.MaxQueue, entry.MaxQueue)
	what := s.workloadWith(podspec.Function{Reference: f.Reference, Digest: f.Digest}, limits, entry)
	limits.Settings = s.Builder.SettingsVersion(podspec.Request{Workload: what, Template: s.Template})
	return limits
}

// workloadOf returns the image and the settings from which a function's pods are built.
func (s Settings) workloadOf(f podspec.Function) podspec.Workload {
	key := pool.Function{Reference: f.Reference, Digest: f.Digest}
	return s.workloadWith(f, s.limitsOf(key), s.entryOf(key))
}

func (s Settings) workloadWith(f podspec.Function, limits pool.Limits, entry cacheconfig.Entry) podspec.Workload {
	return podspec.Workload{
		Function: f, Concurrency: limits.MaxConcurrency, MaxEvaluationTime: entry.MaxEvaluationTime,
		Prefork: entry.Prefork, Resources: entry.Resources, Overrides: entry.Overrides, TLS: s.TLS,
	}
}

// override replaces a setting with a value, unless the value is zero.
func override[T int | ~int64](to *T, value T) {
	if value != 0 {
		*to = value
	}
}

// entryOf returns the configured settings of a function. The settings of a FunctionConfig take precedence. Otherwise,
// an entry for the image's digest takes precedence over an entry for the image's tag.
func (s Settings) entryOf(f pool.Function) cacheconfig.Entry {
	name, err := imagename.Parse(f.Reference, "")
	if err != nil {
		return cacheconfig.Entry{} // cannot happen: resolved names are valid
	}
	if config, ok := s.Configs.Pod(name); ok {
		return config.Settings
	}
	if entry, ok := s.Functions[name.Repository+"@"+f.Digest]; ok {
		return entry
	}
	return s.Functions[name.Key()]
}
