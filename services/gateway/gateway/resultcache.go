// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/program"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/resolverclient"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/resultcache"
)

// ResultCacheConfig configures the cache of function results.
type ResultCacheConfig struct {
	// Images are patterns of the repositories of pure functions, whose output depends only on their image and their input.
	// Results of these functions are cached. Without patterns no results are cached.
	Images []string
	// MaxBytes is the maximum size of the cache, in bytes.
	MaxBytes int64 `split_words:"true" default:"33554432"`
}

// check reports invalid settings.
func (c ResultCacheConfig) check(checks *config.Checks) {
	_, err := imagename.ParsePatterns(c.Images)
	checks.That(err == nil, "ResultCache.Images", strings.Join(c.Images, ","),
		"patterns of repositories, such as ghcr.io/example/fn-*")
	checks.That(len(c.Images) == 0 || c.MaxBytes > 0, "ResultCache.MaxBytes", c.MaxBytes, "1 or more")
}

// newResultCache returns the result cache, or nil if no images are configured.
func newResultCache(cfg Config, services Services, frame program.Frame) (*resultcache.Cache, error) {
	if len(cfg.ResultCache.Images) == 0 {
		return nil, nil //nolint:nilnil // nil remembers nothing
	}
	images, err := imagename.ParsePatterns(cfg.ResultCache.Images)
	if err != nil {
		return nil, err
	}
	network, err := imagename.ParsePatterns(cfg.FunctionNetwork)
	if err != nil {
		return nil, err
	}
	var digests resultcache.Digests
	if services.ImageResolver != nil {
		digests = func(ctx context.Context, image imagename.Name) (string, error) {
			return resolverclient.Digest(ctx, services.ImageResolver, image)
		}
	}
	return resultcache.New(resultcache.Config{
		Images: images, Except: network, MaxBytes: cfg.ResultCache.MaxBytes, Digests: digests,
		Meters: frame.Telemetry.Meters,
	})
}
