// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/config"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/resultcache"
)

// ResultCacheConfig configures the cache of function results.
type ResultCacheConfig struct {
	// Images are patterns of the repositories whose [results are remembered](#result-cache), in the format of
	// FNR_FUNCTION_NETWORK. List only pure functions: their output depends on nothing but their image and their
	// input. No result is remembered if the list is empty.
	Images []string
	// MaxBytes is the maximum memory of the cached results, in addition to the memory budget. Zero means 32 MiB.
	MaxBytes int64 `ignored:"true"`
}

// check adds an error to checks for each invalid setting.
func (c ResultCacheConfig) check(checks *config.Checks) {
	_, err := imagename.ParsePatterns(c.Images)
	checks.That(err == nil, "ResultCache.Images", strings.Join(c.Images, ","),
		"patterns of repositories, such as ghcr.io/example/fn-*")
}

// newResultCache returns the cache of function results. It returns nil if no images are configured for caching.
func newResultCache(cfg Config, services Services, frame servermain.Frame) (*resultcache.Cache, error) {
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
			req := &imageresolverv1.ResolveImageRequest{Image: image.String()}
			resp, err := services.ImageResolver.ResolveImage(ctx, req)
			return resp.GetDigest(), err
		}
	}
	return resultcache.New(resultcache.Config{
		Images: images, Except: network, MaxBytes: cmp.Or(cfg.ResultCache.MaxBytes, 32<<20), Digests: digests,
		Meters: frame.Telemetry.Meters,
	}), nil
}
