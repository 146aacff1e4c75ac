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

// Settings are the settings that may change while the manager runs. Settings is a value: its maps must not be changed.
type Settings struct {
	// Template is the template of new pods.
	Template podspec.Template
	// TLS gives pods an identity. It is nil for pods without certificates.
	TLS *podspec.TLS
	// Builder builds pods.
	Builder podspec.Builder
	// Pools configures all pools. Its limits and its template come from the other fields.
	Pools pool.Config
	// Defaults are the limits of functions without limits of their own.
	Defaults pool.Limits
	// Functions maps [imagename.Name.Key] to functions with settings of their own.
	Functions map[string]cacheconfig.Entry
	// Configs contains the FunctionConfigs, which override Functions for their images. It is nil without
	// FunctionConfigs.
	Configs *functionconfig.Set
	// MinPods is the default minimum of each of Functions. Zero turns all minimums off.
	MinPods int
}

// listedPods maps listed images to their minimum numbers of pods.
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

// poolConfig returns the configuration of the pools.
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

// limitsOf returns the limits of a function.
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

// workloadOf returns the workload of a function's pods.
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

// override replaces a default with a value, unless the value is zero.
func override[T int | ~int64](to *T, value T) {
	if value != 0 {
		*to = value
	}
}

// entryOf returns the settings of a function: from its FunctionConfig, else for its digest, else for its tag.
func (s Settings) entryOf(f pool.Function) cacheconfig.Entry {
	name, err := imagename.Parse(f.Reference, "")
	if err != nil {
		return cacheconfig.Entry{} // resolved names are valid
	}
	if config, ok := s.Configs.Pod(name); ok {
		return config.Settings
	}
	if entry, ok := s.Functions[name.Repository+"@"+f.Digest]; ok {
		return entry
	}
	return s.Functions[name.Key()]
}
