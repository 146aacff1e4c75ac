// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/program"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

// TestSettingsOfSharedResults has one setting wrong in each row.
func TestSettingsOfSharedResults(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*ResultCacheConfig)
		want   string // in the error; empty for none
	}{
		"right":         {func(*ResultCacheConfig) {}, ""},
		"no server":     {func(c *ResultCacheConfig) { *c = ResultCacheConfig{} }, ""},
		"no key":        {func(c *ResultCacheConfig) { c.KeyFile = "" }, "ResultCache.KeyFile"},
		"no images":     {func(c *ResultCacheConfig) { c.Images = nil }, "ResultCache.Images"},
		"no time":       {func(c *ResultCacheConfig) { c.TTL = 0 }, "ResultCache.TTL"},
		"no scheme":     {func(c *ResultCacheConfig) { c.Server = "cache:6379" }, "ResultCache.Server"},
		"a password":    {func(c *ResultCacheConfig) { c.Server = "rediss://fnr:secret@cache" }, "rediss://…@cache"},
		"in a bad URL":  {func(c *ResultCacheConfig) { c.Server = "rediss://fnr:se%cret@cache" }, "rediss://…@cache"},
		"without a URL": {func(c *ResultCacheConfig) { c.Server = "fnr:secret@cache" }, "…@cache"},
	} {
		cfg := ResultCacheConfig{
			Images: []string{"example.com/*"}, MaxBytes: 1, Server: "rediss://cache", KeyFile: "key", TTL: time.Hour,
		}
		tc.change(&cfg)
		var checks config.Checks
		cfg.check(&checks)
		err := checks.Err()
		if (err == nil) != (tc.want == "") {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
		if err != nil && (!strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "cret")) {
			t.Errorf("%s: %v, want %q and no password", name, err, tc.want)
		}
	}
}

func TestVariablesOfSharedResults(t *testing.T) {
	var got []string
	for _, s := range config.Settings(&Config{}) {
		if strings.HasPrefix(s.Variable, "FNR_RESULT_CACHE_") {
			got = append(got, strings.TrimPrefix(s.Variable, "FNR_RESULT_CACHE_"))
		}
	}
	want := []string{"IMAGES", "MAX_BYTES", "SERVER", "KEY_FILE", "PASSWORD_FILE", "CA_FILE", "TTL"}
	if !slices.Equal(got, want) {
		t.Errorf("the variables are %v, want %v", got, want)
	}
}

// TestKeysOfSharedResults has key files that a gateway does not start with.
func TestKeysOfSharedResults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	cfg := Config{MaxMessageBytes: 1 << 20, ResultCache: ResultCacheConfig{Server: "rediss://cache", KeyFile: file}}
	frame := program.Frame{Telemetry: telemetry.Discard(), Health: new(serve.Health)}
	for content, want := range map[string]string{
		"": "no such file", "a secret that is too short": "26 bytes, want 32", strings.Repeat("x", 100): "want 32",
		strings.Repeat("x", 32): "",
	} {
		if content != "" {
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		tier, tasks, err := newTier(cfg, frame)
		if want == "" && (err != nil || tier == nil || len(tasks) != 1+cacheWriters) {
			t.Errorf("a right key: %d tasks, %v", len(tasks), err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("a key of %d bytes: %v, want %q", len(content), err, want)
		}
		_ = os.Remove(file)
	}
}
