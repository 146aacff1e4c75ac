package manager

import (
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/cacheconfig"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// TestLimits sets one thing for a function that has the others by default.
func TestLimits(t *testing.T) {
	const repository, digest = "example.com/fns/set", "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	defaults := pool.Limits{MaxPods: 1, MaxWaitlistLength: 2, MaxConcurrency: 3, MaxQueue: 4, TTL: time.Hour, ReadyTimeout: time.Minute}
	tests := map[string]struct {
		reason string
		key    string
		entry  cacheconfig.Entry
		want   func(*pool.Limits)
	}{
		"nothing":       {"an entry may do no more than warm up", repository + ":v1", cacheconfig.Entry{}, func(*pool.Limits) {}},
		"other version": {"it has settings of its own", repository + ":v2", cacheconfig.Entry{MaxPods: 9}, func(*pool.Limits) {}},
		"digest":        {"a digest says which version it is, too", repository + "@" + digest, cacheconfig.Entry{MaxPods: 9}, func(l *pool.Limits) { l.MaxPods = 9 }},
		"pods":          {"", repository + ":v1", cacheconfig.Entry{MaxPods: 9}, func(l *pool.Limits) { l.MaxPods = 9 }},
		"waitlist":      {"", repository + ":v1", cacheconfig.Entry{MaxWaitlistLength: 9}, func(l *pool.Limits) { l.MaxWaitlistLength = 9 }},
		"concurrency":   {"", repository + ":v1", cacheconfig.Entry{MaxConcurrency: 9}, func(l *pool.Limits) { l.MaxConcurrency = 9 }},
		"queue":         {"", repository + ":v1", cacheconfig.Entry{MaxQueue: 9}, func(l *pool.Limits) { l.MaxQueue = 9 }},
		"time to live":  {"", repository + ":v1", cacheconfig.Entry{TTL: 9}, func(l *pool.Limits) { l.TTL = 9 }},
		"timeout":       {"", repository + ":v1", cacheconfig.Entry{ReadyTimeout: 9}, func(l *pool.Limits) { l.ReadyTimeout = 9 }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			want := defaults
			tc.want(&want)
			s := Settings{Defaults: defaults, Functions: map[string]cacheconfig.Entry{tc.key: tc.entry}}
			if got := s.limits(pool.Function{Reference: repository + ":v1", Digest: digest}); got != want {
				t.Errorf("limits %+v, want %+v: %s", got, want, tc.reason)
			}
		})
	}
}
