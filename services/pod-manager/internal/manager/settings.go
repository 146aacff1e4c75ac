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

// Settings are what may change while the manager runs. It is a value: maps in it are never changed.
type Settings struct {
	// Template is what new pods are made from.
	Template podspec.Template
	// TLS has them prove who they are; nil for pods without certificates.
	TLS *podspec.TLS
	// Builder is what makes them.
	Builder podspec.Builder
	// Pools are the limits of functions that have none of their own, and of all functions together.
	Pools pool.Config
	// Defaults are the limits of a function.
	Defaults pool.Limits
	// Functions are the functions with settings of their own, by the name that [imagename.Name.Key] has for them.
	Functions map[string]cacheconfig.Entry
	// Configs are FunctionConfigs, which win over Functions for their images; nil if there are none.
	Configs *functionconfig.Set
	// MinPods is how many pods each of Functions keeps although no lease needs them, unless its entry sets another
	// number. Zero turns the minimum of all functions off.
	MinPods int
}

// listedPods returns how many pods the listed functions keep, by image.
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

// poolConfig is the configuration of the pools.
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

// workloadOf is what the pods of a function run.
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

// override sets the value of an entry, if it has one.
func override[T int | ~int64](to *T, value T) {
	if value != 0 {
		*to = value
	}
}

// entryOf returns the settings of a function: those of its FunctionConfig, or else of its digest, or else of its tag.
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
