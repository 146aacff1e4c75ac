// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/cacheconfig"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// TestLimits sets one thing for a function that has the others by default.
func TestLimits(t *testing.T) {
	const (
		repository = "example.com/fns/set"
		digest     = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	)
	defaults := pool.Limits{
		MaxPods: 1, MaxWaitlistLength: 2, MaxConcurrency: 3, MaxQueue: 4,
		TTL: time.Hour, ReadyTimeout: time.Minute,
	}
	tests := map[string]struct {
		reason string
		key    string
		entry  cacheconfig.Entry
		want   func(*pool.Limits)
	}{
		"nothing": {
			"an entry may do no more than warm up",
			repository + ":v1",
			cacheconfig.Entry{},
			func(*pool.Limits) {},
		},
		"other version": {
			"it has settings of its own",
			repository + ":v2",
			cacheconfig.Entry{MaxPods: 9},
			func(*pool.Limits) {},
		},
		"digest": {
			"a digest says which version it is, too",
			repository + "@" + digest,
			cacheconfig.Entry{MaxPods: 9},
			func(l *pool.Limits) { l.MaxPods = 9 },
		},
		"pods": {"", repository + ":v1", cacheconfig.Entry{MaxPods: 9}, func(l *pool.Limits) { l.MaxPods = 9 }},
		"waitlist": {
			"",
			repository + ":v1",
			cacheconfig.Entry{MaxWaitlistLength: 9},
			func(l *pool.Limits) { l.MaxWaitlistLength = 9 },
		},
		"concurrency": {
			"",
			repository + ":v1",
			cacheconfig.Entry{MaxConcurrency: 9},
			func(l *pool.Limits) { l.MaxConcurrency = 9 },
		},
		"queue":        {"", repository + ":v1", cacheconfig.Entry{MaxQueue: 9}, func(l *pool.Limits) { l.MaxQueue = 9 }},
		"time to live": {"", repository + ":v1", cacheconfig.Entry{TTL: 9}, func(l *pool.Limits) { l.TTL = 9 }},
		"timeout": {
			"",
			repository + ":v1",
			cacheconfig.Entry{ReadyTimeout: 9},
			func(l *pool.Limits) { l.ReadyTimeout = 9 },
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			want := defaults
			tc.want(&want)
			s := Settings{Defaults: defaults, Functions: map[string]cacheconfig.Entry{tc.key: tc.entry}}
			got := s.limitsOf(pool.Function{Reference: repository + ":v1", Digest: digest})
			if got.Settings = ""; got != want { // see TestVersion
				t.Errorf("limits %+v, want %+v: %s", got, want, tc.reason)
			}
		})
	}
}

// TestVersion has pods of a function replaced if, and only if, what shapes them changes.
func TestVersion(t *testing.T) {
	f := pool.Function{Reference: "example.com/fns/set:v1", Digest: "sha256:01"}
	version := func(change func(*Settings, *cacheconfig.Entry)) string {
		s, entry := Settings{Defaults: pool.Limits{MaxConcurrency: 3}}, cacheconfig.Entry{}
		change(&s, &entry)
		s.Functions = map[string]cacheconfig.Entry{
			"example.com/fns/set:v1":   entry,
			"example.com/fns/other:v1": {MaxConcurrency: 9},
		}
		return s.poolConfig().Limits(f).Settings
	}
	first := version(func(*Settings, *cacheconfig.Entry) {})
	tests := map[string]struct {
		change func(*Settings, *cacheconfig.Entry)
		same   bool
	}{
		"a time to live":     {func(_ *Settings, e *cacheconfig.Entry) { e.TTL = 9 }, true},
		"more pods":          {func(s *Settings, e *cacheconfig.Entry) { s.Defaults.MaxPods, e.MaxPods = 9, 9 }, true},
		"the builder's":      {func(s *Settings, _ *cacheconfig.Entry) { s.Builder.MaxMessageBytes = 9 }, false},
		"concurrency":        {func(s *Settings, _ *cacheconfig.Entry) { s.Defaults.MaxConcurrency = 9 }, false},
		"its concurrency":    {func(_ *Settings, e *cacheconfig.Entry) { e.MaxConcurrency = 9 }, false},
		"the same, said now": {func(_ *Settings, e *cacheconfig.Entry) { e.MaxConcurrency = 3 }, true},
		"its processes":      {func(_ *Settings, e *cacheconfig.Entry) { e.Prefork = new(int) }, false},
		"its resources": {
			func(_ *Settings, e *cacheconfig.Entry) { e.Resources = &corev1.ResourceRequirements{} },
			false,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := version(tc.change); (got == first) != tc.same {
				t.Errorf("version %q, and it was %q, want the same: %v", got, first, tc.same)
			}
		})
	}
}
